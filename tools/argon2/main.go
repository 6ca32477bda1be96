// Command argon2 writes the vector code of argon2's compression: one function for AVX2 and one for AVX-512.
//
//	go -C tools/argon2 run . -out ../../domain/account/password/argon2id/compress_amd64.s
//
// The one idea: a generator can be reviewed, thousands of lines of assembly cannot. Both functions do what compress of
// compress.go does, and their tests compare them with it. In addition they compute the reference of the next block as
// soon as its word is ready, and fetch it during the rest of the work.
//
// A block is a matrix of 8 rows of 16 words. The compression mixes each row and then each column, where a column
// consists of two adjacent words of each row. Sixteen words v0…v15 are mixed twice by four quarter rounds (RFC 9106,
// section 3.6). The quarters a = v0…v3, b = v4…v7, c = v8…v11 and d = v12…v15 lie in vectors, so that one operation
// works on all four rounds. Before the second time the quarters are turned against each other. b is ready last, so it
// stays, and a, c and d turn: b's word k meets a's word k-1, c's word k+1 and d's word k+2.
//
// Neither a branch nor an address depends on a secret, except the reference, where argon2 prescribes it. No pointer is
// written. Start reading at entry, then avx2.go and avx512.go.
package main

import (
	"math/bits"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

const (
	wordBytes  = 8
	rowWords   = 16
	rows       = 8
	rowBytes   = rowWords * wordBytes
	blockBytes = rows * rowBytes
	lineBytes  = 64
)

// The fields of the Go type ahead.
const (
	aheadMemory = 0
	aheadKnown  = 8
	aheadArea   = 12
	aheadLast   = 16
	aheadLength = 20
)

func main() {
	avx2()
	avx512()
	Generate()
}

// args are the registers of a function's arguments.
type args struct {
	out, x, y, scratch, ahead, keep Register
}

// entry begins a function and loads its arguments.
func entry(name, doc string) args {
	TEXT(name, NOSPLIT, "func(out, x, y *[128]uint64, keep bool, scratch *[256]uint64, next *[3]uint64) (ref uint32)")
	Doc(doc)
	a := args{out: RDI, x: RSI, y: RDX, scratch: R8, ahead: R9, keep: R10B}
	Load(Param("out"), a.out)
	Load(Param("x"), a.x)
	Load(Param("y"), a.y)
	Load(Param("keep"), a.keep)
	Load(Param("scratch"), a.scratch)
	Load(Param("next"), a.ahead)
	return a
}

// at is the memory of a vector: that many bytes after a base.
func at(base Register, disp int) Mem { return Mem{Base: base, Disp: disp} }

// chase fetches the reference of the next block, and returns its number. EAX holds the random word of the next block,
// which is the low half of this block's word 0. The computation is that of ahead.reference.
func (a args) chase() {
	Comment("The reference of the next block: known, or from the random word in EAX.")
	MOVL(at(a.ahead, aheadKnown), EBX)
	MOVL(at(a.ahead, aheadArea), ECX)
	TESTL(ECX, ECX)
	JZ(LabelRef("fetch"))
	IMULQ(RAX, RAX) // the upper half of RAX is zero: every 32-bit operation on EAX clears it
	SHRQ(Imm(32), RAX)
	IMULQ(RCX, RAX)
	SHRQ(Imm(32), RAX)
	MOVL(at(a.ahead, aheadLast), EBX)
	SUBL(EAX, EBX)
	MOVL(EBX, ECX)
	SUBL(at(a.ahead, aheadLength), ECX)
	CMOVLCC(ECX, EBX) // past the end of the lane: from its beginning
	Label("fetch")
	Store(EBX, Return("ref"))
	SHLQ(Imm(uint64(bits.TrailingZeros(blockBytes))), RBX)
	ADDQ(at(a.ahead, aheadMemory), RBX)
	for i := 0; i < blockBytes; i += lineBytes {
		PREFETCHT0(at(RBX, i))
	}
}

// fetchOld fetches the old content of the block after out, which the next compression adds. Behind the last block
// there may be no memory: a fetch does not fault.
func (a args) fetchOld() {
	for i := 0; i < blockBytes; i += lineBytes {
		PREFETCHT0(at(a.out, blockBytes+i))
	}
}

// quarters are the vectors of sixteen words, or of several times sixteen, and one of intermediate results.
type quarters struct{ a, b, c, d, t VecPhysical }

// The second time, place k of a quarter has the word k + turn.
const turnA, turnC, turnD = -1, 1, 2

// half is half of a quarter round on all groups: a += b + 2·lo(a)·lo(b), d = (d^a) >>> n, and the same for c, d and b
// with another n. A step waits for the one before it, so each is done for all groups before the next one. The functions
// are the steps that differ between the instruction sets.
func half(groups []quarters, xorD, rotateD, xorB, rotateB func(quarters)) {
	each := func(f func(g quarters)) {
		for _, g := range groups {
			f(g)
		}
	}
	each(func(g quarters) { VPMULUDQ(g.a, g.b, g.t) })
	each(func(g quarters) { VPADDQ(g.b, g.a, g.a) })
	each(func(g quarters) { VPADDQ(g.t, g.t, g.t) })
	each(func(g quarters) { VPADDQ(g.t, g.a, g.a) })
	each(xorD)
	each(rotateD)
	each(func(g quarters) { VPMULUDQ(g.c, g.d, g.t) })
	each(func(g quarters) { VPADDQ(g.d, g.c, g.c) })
	each(func(g quarters) { VPADDQ(g.t, g.t, g.t) })
	each(func(g quarters) { VPADDQ(g.t, g.c, g.c) })
	each(xorB)
	each(rotateB)
}
