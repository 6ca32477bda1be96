package password

import (
	"encoding/binary"
	"syscall"
	"unsafe"

	"golang.org/x/crypto/blake2b"
)

// Argon2id, version 0x13 (RFC 9106), over memory that its caller owns.
//
// The usual package allocates the whole memory for each hash. Under many logins that garbage doubles a heap of a
// hundred megabytes within seconds, and collecting it costs as much as the hashes. This implementation reuses one
// arena per slot. The lanes of a hash run one after another, because a slot represents one processor. Tests compare
// it with the vectors of the RFC and with that package.

const (
	version    = 0x13
	modeI      = 1 // argon2i, of imported hashes only
	modeID     = 2 // argon2id
	syncPoints = 4 // slices of a pass
	blockWords = 128
	blockBytes = 8 * blockWords
)

type block [blockWords]uint64

// arena is the memory of one hash at a time. It is mapped from the system, outside the heap: the collector would let
// the garbage of the whole service grow in proportion to the slots. The slot that drops an arena frees it.
type arena struct {
	blocks []block
	mapped []byte // the memory behind the blocks
}

// size is the number of blocks the parameters use: a multiple of four per
// lane, and at least eight per lane.
func (p Params) size() uint32 {
	per := syncPoints * uint32(p.Lanes)
	return max(p.MemoryKiB/per*per, 2*per)
}

// grow makes room for a hash; the contents need not be zero, because the
// first pass writes every block before it is read.
func (a *arena) grow(blocks uint32) {
	if uint32(len(a.blocks)) >= blocks {
		return
	}
	a.free()
	m, err := syscall.Mmap(-1, 0, int(blocks)*blockBytes, syscall.PROT_READ|syscall.PROT_WRITE,
		syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil { // the system has no more mappings; the heap may have room
		a.blocks = make([]block, blocks)
		return
	}
	// #nosec G103: memory of the system, of exactly that many blocks (record 1).
	a.mapped, a.blocks = m, unsafe.Slice((*block)(unsafe.Pointer(unsafe.SliceData(m))), blocks)
}

// free returns the memory to the system.
func (a *arena) free() {
	if a.mapped != nil {
		syscall.Munmap(a.mapped) // unmapping a mapped region cannot fail
	}
	a.blocks, a.mapped = nil, nil
}

// derive computes a tag of n bytes.
func (a *arena) derive(password, salt, secret, data []byte, p Params, n uint32) []byte {
	return a.deriveAs(modeID, password, salt, secret, data, p, n)
}

// deriveAs is derive for one of the modes.
func (a *arena) deriveAs(mode uint32, password, salt, secret, data []byte, p Params, n uint32) []byte {
	size, lanes := p.size(), uint32(p.Lanes)
	a.grow(size)
	f := filler{memory: a.blocks[:size], lanes: lanes, length: size / lanes, segment: size / lanes / syncPoints,
		passes: p.Passes, mode: mode}
	f.start(seed(mode, password, salt, secret, data, p, n))
	for f.pass = 0; f.pass < p.Passes; f.pass++ {
		for f.slice = 0; f.slice < syncPoints; f.slice++ {
			for f.lane = 0; f.lane < lanes; f.lane++ {
				f.fill()
			}
		}
	}
	last := f.memory[f.length-1]
	for lane := uint32(1); lane < lanes; lane++ {
		for i, v := range f.memory[lane*f.length+f.length-1] {
			last[i] ^= v
		}
	}
	var text [blockBytes]byte
	for i, v := range last {
		binary.LittleEndian.PutUint64(text[8*i:], v)
	}
	tag := make([]byte, n)
	stretch(tag, text[:])
	return tag
}

// seed is H0, with room for the block and lane numbers behind it.
func seed(mode uint32, password, salt, secret, data []byte, p Params, n uint32) *[blake2b.Size + 8]byte {
	le := binary.LittleEndian.AppendUint32
	in := make([]byte, 0, 64+len(password)+len(salt)+len(secret)+len(data))
	for _, v := range []uint32{uint32(p.Lanes), n, p.MemoryKiB, p.Passes, version, mode} {
		in = le(in, v)
	}
	for _, part := range [][]byte{password, salt, secret, data} {
		in = append(le(in, uint32(len(part))), part...)
	}
	var h [blake2b.Size + 8]byte
	sum := blake2b.Sum512(in)
	copy(h[:], sum[:])
	clear(in) // it held the password
	return &h
}

// stretch is H′, the hash of variable length (RFC 9106, section 3.3).
func stretch(out, in []byte) {
	prefixed := append(binary.LittleEndian.AppendUint32(make([]byte, 0, 4+len(in)), uint32(len(out))), in...)
	if len(out) <= blake2b.Size {
		h, err := blake2b.New(len(out), nil)
		if err != nil {
			panic("password: a tag of no bytes") // a constant length; cannot happen
		}
		h.Write(prefixed)
		h.Sum(out[:0])
		return
	}
	v := blake2b.Sum512(prefixed)
	for len(out) > blake2b.Size {
		copy(out, v[:32])
		if out = out[32:]; len(out) > blake2b.Size {
			v = blake2b.Sum512(v[:])
		}
	}
	h, _ := blake2b.New(len(out), nil) // 33…64 bytes
	h.Write(v[:])
	h.Sum(out[:0])
}

// filler walks the memory: pass by pass, slice by slice, lane by lane.
type filler struct {
	memory                        []block
	lanes, length, segment        uint32 // length and segment in blocks of a lane
	passes, mode                  uint32
	pass, slice, lane             uint32
	input, addresses, zero, spare block
}

func (f *filler) start(h0 *[blake2b.Size + 8]byte) {
	var text [blockBytes]byte
	for lane := range f.lanes {
		for i := range uint32(2) {
			binary.LittleEndian.PutUint32(h0[blake2b.Size:], i)
			binary.LittleEndian.PutUint32(h0[blake2b.Size+4:], lane)
			stretch(text[:], h0[:])
			b := &f.memory[lane*f.length+i]
			for j := range b {
				b[j] = binary.LittleEndian.Uint64(text[8*j:])
			}
		}
	}
}

// fill fills one segment.
func (f *filler) fill() {
	// The first half pass of argon2id hides the password, and every pass of argon2i.
	independent := f.mode == modeI || f.pass == 0 && f.slice < syncPoints/2
	first := uint32(0)
	if independent {
		f.input = block{uint64(f.pass), uint64(f.lane), uint64(f.slice), uint64(len(f.memory)), uint64(f.passes),
			uint64(f.mode)}
		if f.pass == 0 && f.slice == 0 {
			first = 2 // made by start
			f.nextAddresses()
		}
	}
	base := f.lane * f.length
	for i := first; i < f.segment; i++ {
		at := f.slice*f.segment + i
		before := at - 1
		if at == 0 {
			before = f.length - 1
		}
		previous := &f.memory[base+before]
		random := previous[0]
		if independent {
			if i%blockWords == 0 {
				f.nextAddresses()
			}
			random = f.addresses[i%blockWords]
		}
		compress(&f.memory[base+at], previous, &f.memory[f.reference(random, i)], f.pass > 0)
	}
}

func (f *filler) nextAddresses() {
	f.input[6]++
	compress(&f.spare, &f.input, &f.zero, false)
	compress(&f.addresses, &f.spare, &f.zero, false)
}

// reference maps a random word to the block it refers to (RFC 9106, section 3.4).
func (f *filler) reference(random uint64, i uint32) uint32 {
	lane := uint32(random>>32) % f.lanes
	if f.pass == 0 && f.slice == 0 {
		lane = f.lane
	}
	// The area holds the finished segments, and of the current one the blocks before this one in the same lane.
	area, start := f.slice*f.segment, uint32(0)
	if f.pass > 0 {
		area, start = (syncPoints-1)*f.segment, (f.slice+1)%syncPoints*f.segment
	}
	if lane == f.lane {
		area += i - 1
	} else if i == 0 {
		area--
	}
	x := random & 0xffffffff
	x = x * x >> 32
	back := uint32(uint64(area) * x >> 32)
	return lane*f.length + (start+area-1-back)%f.length
}

// compress is G: out = P(x ^ y) ^ x ^ y. Later passes add the previous content of out. out must be neither x nor y.
func compress(out, x, y *block, keep bool) {
	var t block
	// Read one word of each cache line of y first. y lies anywhere in the memory, so its sixteen cache misses
	// overlap. The words are overwritten below.
	t[0] = y[0] ^ y[8] ^ y[16] ^ y[24] ^ y[32] ^ y[40] ^ y[48] ^ y[56] ^
		y[64] ^ y[72] ^ y[80] ^ y[88] ^ y[96] ^ y[104] ^ y[112] ^ y[120]
	if !keep {
		*out = block{}
	}
	for i := 0; i < blockWords; i += 16 { // rows
		v, x, y := (*[16]uint64)(t[i:]), (*[16]uint64)(x[i:]), (*[16]uint64)(y[i:])
		v00, v04, v08, v12 := mix(x[0]^y[0], x[4]^y[4], x[8]^y[8], x[12]^y[12])
		v01, v05, v09, v13 := mix(x[1]^y[1], x[5]^y[5], x[9]^y[9], x[13]^y[13])
		v02, v06, v10, v14 := mix(x[2]^y[2], x[6]^y[6], x[10]^y[10], x[14]^y[14])
		v03, v07, v11, v15 := mix(x[3]^y[3], x[7]^y[7], x[11]^y[11], x[15]^y[15])
		v[0], v[5], v[10], v[15] = mix(v00, v05, v10, v15)
		v[1], v[6], v[11], v[12] = mix(v01, v06, v11, v12)
		v[2], v[7], v[8], v[13] = mix(v02, v07, v08, v13)
		v[3], v[4], v[9], v[14] = mix(v03, v04, v09, v14)
	}
	for i := 0; i < 16; i += 2 { // columns, added to out as they are done
		v, o := (*[114]uint64)(t[i:]), (*[114]uint64)(out[i:])
		x, y := (*[114]uint64)(x[i:]), (*[114]uint64)(y[i:])
		v00, v04, v08, v12 := mix(v[0], v[32], v[64], v[96])
		v01, v05, v09, v13 := mix(v[1], v[33], v[65], v[97])
		v02, v06, v10, v14 := mix(v[16], v[48], v[80], v[112])
		v03, v07, v11, v15 := mix(v[17], v[49], v[81], v[113])
		a, b, c, d := mix(v00, v05, v10, v15)
		o[0] ^= a ^ x[0] ^ y[0]
		o[33] ^= b ^ x[33] ^ y[33]
		o[80] ^= c ^ x[80] ^ y[80]
		o[113] ^= d ^ x[113] ^ y[113]
		a, b, c, d = mix(v01, v06, v11, v12)
		o[1] ^= a ^ x[1] ^ y[1]
		o[48] ^= b ^ x[48] ^ y[48]
		o[81] ^= c ^ x[81] ^ y[81]
		o[96] ^= d ^ x[96] ^ y[96]
		a, b, c, d = mix(v02, v07, v08, v13)
		o[16] ^= a ^ x[16] ^ y[16]
		o[49] ^= b ^ x[49] ^ y[49]
		o[64] ^= c ^ x[64] ^ y[64]
		o[97] ^= d ^ x[97] ^ y[97]
		a, b, c, d = mix(v03, v04, v09, v14)
		o[17] ^= a ^ x[17] ^ y[17]
		o[32] ^= b ^ x[32] ^ y[32]
		o[65] ^= c ^ x[65] ^ y[65]
		o[112] ^= d ^ x[112] ^ y[112]
	}
}

// mix is GB, the quarter round (RFC 9106, section 3.6).
func mix(a, b, c, d uint64) (uint64, uint64, uint64, uint64) {
	a += b + 2*uint64(uint32(a))*uint64(uint32(b))
	d ^= a
	d = d>>32 | d<<32
	c += d + 2*uint64(uint32(c))*uint64(uint32(d))
	b ^= c
	b = b>>24 | b<<40
	a += b + 2*uint64(uint32(a))*uint64(uint32(b))
	d ^= a
	d = d>>16 | d<<48
	c += d + 2*uint64(uint32(c))*uint64(uint32(d))
	b ^= c
	b = b>>63 | b<<1
	return a, b, c, d
}
