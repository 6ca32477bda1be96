// Package argon2id owns the function that hashes passwords: argon2id, version 0x13 (RFC 9106), over memory that its
// caller keeps.
//
// The usual package allocates the whole memory for each hash. Under many logins that garbage doubles a heap of a
// hundred megabytes within seconds, and collecting it costs as much as the hashes. Here a Memory serves one hash after
// the other. The lanes of a hash run one after another, because a caller has one processor.
//
// The one idea: nearly all of the time is spent in compress, which mixes two blocks of 1 KiB. It has a variant for
// AVX-512 and one for AVX2, which tools/argon2 generates, and one in Go (compress.go). A block refers to an earlier one
// at a random place, whose cache misses would cost as much as the mixing. So the reference of the next block is fetched
// during the compression of this one (ahead). Tests compare all variants with the vectors of the RFC and with the usual
// package. Record 1 has the reasons and the figures.
//
// Start reading at Memory.Derive.
package argon2id

import (
	"cmp"
	"encoding/binary"

	"golang.org/x/crypto/blake2b"
)

const (
	version    = 0x13
	modeI      = 1 // argon2i, of imported hashes only
	modeID     = 2 // argon2id
	syncPoints = 4 // slices of a pass
	blockWords = 128
	blockBytes = 8 * blockWords
)

type block [blockWords]uint64

// Params are the cost parameters of a hash. They must be valid: passes and lanes above zero.
type Params struct {
	MemoryKiB uint32
	Passes    uint32
	Lanes     uint8
}

// Size is the number of bytes of memory that a hash needs.
func (p Params) Size() int { return int(p.size()) * blockBytes }

// size is the number of blocks the parameters use: a multiple of four per
// lane, and at least eight per lane.
func (p Params) size() uint32 {
	per := syncPoints * uint32(p.Lanes)
	return max(p.MemoryKiB/per*per, 2*per)
}

// Derive computes a tag of n bytes by argon2id. secret and data are optional.
func (m *Memory) Derive(password, salt, secret, data []byte, p Params, n uint32) []byte {
	return m.derive(modeID, password, salt, secret, data, p, n)
}

// DeriveI is Derive by argon2i, for hashes of other services.
func (m *Memory) DeriveI(password, salt []byte, p Params, n uint32) []byte {
	return m.derive(modeI, password, salt, nil, nil, p, n)
}

func (m *Memory) derive(mode uint32, password, salt, secret, data []byte, p Params, n uint32) []byte {
	size, lanes := p.size(), uint32(p.Lanes)
	m.grow(size)
	f := filler{memory: m.blocks[:size], scratch: m.scratch, with: cmp.Or(m.with, chosen), lanes: lanes,
		length: size / lanes, segment: size / lanes / syncPoints, passes: p.Passes, mode: mode}
	f.ahead.memory, f.ahead.length = &f.memory[0], f.length
	defer clear(m.scratch[:])
	h0 := seed(mode, password, salt, secret, data, p, n)
	defer clear(h0[:])
	f.start(h0)
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
	defer clear(prefixed)
	if len(out) <= blake2b.Size {
		h, err := blake2b.New(len(out), nil)
		if err != nil {
			panic("argon2id: a tag of no bytes") // a constant length; cannot happen
		}
		h.Write(prefixed)
		h.Sum(out[:0])
		return
	}
	v := blake2b.Sum512(prefixed)
	defer clear(v[:])
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
	memory                 []block
	scratch                *scratch
	with                   variant
	lanes, length, segment uint32 // length and segment in blocks of a lane
	passes, mode           uint32
	pass, slice, lane      uint32
	ahead                  ahead

	input, addresses, zero, spare block
}

func (f *filler) start(h0 *[blake2b.Size + 8]byte) {
	var text [blockBytes]byte
	defer clear(text[:])
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

// fill fills one segment. It knows the reference of a block, or its area, before it compresses the block before it, so
// that the reference is fetched meanwhile.
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
	at := base + f.slice*f.segment + first
	previous := &f.memory[base+(at-base+f.length-1)%f.length]
	f.ahead.area = 0
	var reference uint32
	if independent {
		reference = f.independent(first)
	} else {
		reference = f.reference(previous[0], first)
	}
	for i := first; i < f.segment; i++ {
		last := i+1 == f.segment
		f.ahead.area, f.ahead.known = 0, reference
		switch {
		case last:
		case independent:
			f.ahead.known = f.independent(i + 1)
		case f.lanes == 1:
			f.ahead.area, f.ahead.last = f.area(f.lane, i+1)
		}
		out := &f.memory[at]
		reference = f.compress(out, previous, &f.memory[reference], f.pass > 0)
		if !independent && f.lanes > 1 && !last {
			reference = f.reference(out[0], i+1)
		}
		previous = out
		at++
	}
}

// independent returns the reference of block i of a segment whose references do not depend on the blocks.
func (f *filler) independent(i uint32) uint32 {
	if i%blockWords == 0 {
		f.nextAddresses()
	}
	return f.reference(f.addresses[i%blockWords], i)
}

func (f *filler) nextAddresses() {
	f.input[6]++
	f.compress(&f.spare, &f.input, &f.zero, false)
	f.compress(&f.addresses, &f.spare, &f.zero, false)
}

// reference maps the random word of block i to the block it refers to (RFC 9106, section 3.4).
func (f *filler) reference(random uint64, i uint32) uint32 {
	lane := uint32(random>>32) % f.lanes
	if f.pass == 0 && f.slice == 0 {
		lane = f.lane
	}
	area, last := f.area(lane, i)
	return lane*f.length + (&ahead{area: area, last: last, length: f.length}).reference(uint32(random))
}

// area returns the number of blocks of a lane that block i may refer to, and the last of them. The area holds the
// finished segments, and of the current one the blocks before the previous one in the same lane.
func (f *filler) area(lane, i uint32) (area, last uint32) {
	area, start := f.slice*f.segment, uint32(0)
	if f.pass > 0 {
		area, start = (syncPoints-1)*f.segment, (f.slice+1)%syncPoints*f.segment
	}
	if lane == f.lane {
		area += i - 1
	} else if i == 0 {
		area--
	}
	return area, start + area - 1
}

// ahead describes the reference of the next block. The vector code reads it: its order is that of tools/argon2.
type ahead struct {
	memory *block // the first one
	known  uint32 // the reference if area is 0, counted from memory
	area   uint32 // the number of blocks that it may be, all of the only lane
	last   uint32 // the last of them; beyond the end of the lane the count begins again
	length uint32 // of the lane
}

// reference returns the reference for the low half of a random word.
func (a *ahead) reference(random uint32) uint32 {
	if a.area == 0 {
		return a.known
	}
	x := uint64(random) * uint64(random) >> 32
	reference := a.last - uint32(uint64(a.area)*x>>32)
	if reference >= a.length {
		reference -= a.length
	}
	return reference
}
