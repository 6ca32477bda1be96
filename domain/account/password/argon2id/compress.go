package argon2id

// compress is G: out = P(x ^ y) ^ x ^ y. Later passes add the previous content of out. out must be neither x nor y. t
// receives intermediate results.
func compress(out, x, y *block, keep bool, t *block) {
	// Read one word of each cache line of y first. y lies anywhere in the memory, so its sixteen cache misses
	// overlap. The words are overwritten below.
	t[0] = y[0] ^ y[8] ^ y[16] ^ y[24] ^ y[32] ^ y[40] ^ y[48] ^ y[56] ^
		y[64] ^ y[72] ^ y[80] ^ y[88] ^ y[96] ^ y[104] ^ y[112] ^ y[120]
	if !keep {
		*out = block{}
	}
	for i := 0; i < blockWords; i += 16 { // rows
		v, x, y := (*[16]uint64)(t[i:]), (*[16]uint64)(x[i:]), (*[16]uint64)(y[i:])
		v00, v04, v08, v12 := mixSecond(mixFirst(x[0]^y[0], x[4]^y[4], x[8]^y[8], x[12]^y[12]))
		v01, v05, v09, v13 := mixSecond(mixFirst(x[1]^y[1], x[5]^y[5], x[9]^y[9], x[13]^y[13]))
		v02, v06, v10, v14 := mixSecond(mixFirst(x[2]^y[2], x[6]^y[6], x[10]^y[10], x[14]^y[14]))
		v03, v07, v11, v15 := mixSecond(mixFirst(x[3]^y[3], x[7]^y[7], x[11]^y[11], x[15]^y[15]))
		v[0], v[5], v[10], v[15] = mixSecond(mixFirst(v00, v05, v10, v15))
		v[1], v[6], v[11], v[12] = mixSecond(mixFirst(v01, v06, v11, v12))
		v[2], v[7], v[8], v[13] = mixSecond(mixFirst(v02, v07, v08, v13))
		v[3], v[4], v[9], v[14] = mixSecond(mixFirst(v03, v04, v09, v14))
	}
	for i := 0; i < 16; i += 2 { // columns, added to out as they are done
		v, o := (*[114]uint64)(t[i:]), (*[114]uint64)(out[i:])
		x, y := (*[114]uint64)(x[i:]), (*[114]uint64)(y[i:])
		v00, v04, v08, v12 := mixSecond(mixFirst(v[0], v[32], v[64], v[96]))
		v01, v05, v09, v13 := mixSecond(mixFirst(v[1], v[33], v[65], v[97]))
		v02, v06, v10, v14 := mixSecond(mixFirst(v[16], v[48], v[80], v[112]))
		v03, v07, v11, v15 := mixSecond(mixFirst(v[17], v[49], v[81], v[113]))
		a, b, c, d := mixSecond(mixFirst(v00, v05, v10, v15))
		o[0] ^= a ^ x[0] ^ y[0]
		o[33] ^= b ^ x[33] ^ y[33]
		o[80] ^= c ^ x[80] ^ y[80]
		o[113] ^= d ^ x[113] ^ y[113]
		a, b, c, d = mixSecond(mixFirst(v01, v06, v11, v12))
		o[1] ^= a ^ x[1] ^ y[1]
		o[48] ^= b ^ x[48] ^ y[48]
		o[81] ^= c ^ x[81] ^ y[81]
		o[96] ^= d ^ x[96] ^ y[96]
		a, b, c, d = mixSecond(mixFirst(v02, v07, v08, v13))
		o[16] ^= a ^ x[16] ^ y[16]
		o[49] ^= b ^ x[49] ^ y[49]
		o[64] ^= c ^ x[64] ^ y[64]
		o[97] ^= d ^ x[97] ^ y[97]
		a, b, c, d = mixSecond(mixFirst(v03, v04, v09, v14))
		o[17] ^= a ^ x[17] ^ y[17]
		o[32] ^= b ^ x[32] ^ y[32]
		o[65] ^= c ^ x[65] ^ y[65]
		o[112] ^= d ^ x[112] ^ y[112]
	}
}

// mixFirst and mixSecond are the halves of GB, the quarter round (RFC 9106, section 3.6). The compiler inlines each of
// them, and would not inline the whole.
func mixFirst(a, b, c, d uint64) (uint64, uint64, uint64, uint64) {
	a += b + 2*uint64(uint32(a))*uint64(uint32(b))
	d ^= a
	d = d>>32 | d<<32
	c += d + 2*uint64(uint32(c))*uint64(uint32(d))
	b ^= c
	b = b>>24 | b<<40
	return a, b, c, d
}

func mixSecond(a, b, c, d uint64) (uint64, uint64, uint64, uint64) {
	a += b + 2*uint64(uint32(a))*uint64(uint32(b))
	d ^= a
	d = d>>16 | d<<48
	c += d + 2*uint64(uint32(c))*uint64(uint32(d))
	b ^= c
	b = b>>63 | b<<1
	return a, b, c, d
}
