package main

import (
	"fmt"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// AVX2: a vector has four words, a row four vectors. The sixteen registers hold three rows or two columns, so the
// scratch memory holds the rest. Its first KiB is the state between rows and columns. Its second KiB is x ^ y, with the
// old content if that is kept.

const vectorBytes = 32 // of AVX2

var (
	ymm = []VecPhysical{Y0, Y1, Y2, Y3, Y4, Y5, Y6, Y7, Y8, Y9, Y10, Y11, Y12, Y13, Y14, Y15}

	right24, right16 Mem // VPSHUFB patterns that rotate each word to the right by that many bits
)

func avx2() {
	right24, right16 = rotation("right24", 3), rotation("right16", 2)
	args := entry("compressAVX2", "compressAVX2 is compress with AVX2, and fetches the reference of the next block.")
	r24 := Y15
	VMOVDQU(right24, r24)
	for first := 0; first < rows; first += 3 {
		args.mixRows(first, min(3, rows-first), r24)
	}
	for pair := range rowWords / 4 {
		row0 := args.mixColumns(pair, r24)
		if pair > 0 {
			continue
		}
		VMOVD(row0.(Vec).AsX(), EAX)
		args.chase()
		TESTB(args.keep, args.keep)
		JZ(LabelRef("columns"))
		args.fetchOld()
		Label("columns")
	}
	VZEROUPPER()
	RET()
}

// rotation defines the pattern of a rotation to the right by whole bytes.
func rotation(name string, bytes int) Mem {
	table := GLOBL(name, RODATA|NOPTR)
	for word := range vectorBytes / wordBytes {
		var pattern uint64
		for i := range wordBytes {
			from := word%2*wordBytes + (i+bytes)%wordBytes // a pattern counts within 16 bytes
			pattern |= uint64(from) << (8 * i)
		}
		DATA(word*wordBytes, U64(pattern))
	}
	return table
}

// mixYMM mixes the groups. turned runs between the two times.
func mixYMM(groups []quarters, r24 Op, turned func()) {
	round := func() {
		half(groups,
			func(g quarters) { VPXOR(g.a, g.d, g.d) }, func(g quarters) { VPSHUFD(Imm(0b10_11_00_01), g.d, g.d) },
			func(g quarters) { VPXOR(g.c, g.b, g.b) }, func(g quarters) { VPSHUFB(r24, g.b, g.b) })
		half(groups,
			func(g quarters) { VPXOR(g.a, g.d, g.d) }, func(g quarters) { VPSHUFB(right16, g.d, g.d) },
			func(g quarters) { VPXOR(g.c, g.b, g.b) }, func(g quarters) {
				VPADDQ(g.b, g.b, g.t)
				VPSRLQ(Imm(63), g.b, g.b)
				VPXOR(g.t, g.b, g.b)
			})
	}
	round()
	turned()
	round()
}

// mixRows mixes up to three rows, from the arguments into the scratch memory.
func (a args) mixRows(first, n int, r24 Op) {
	Commentf("Rows %d to %d.", first, first+n-1)
	groups := make([]quarters, n)
	for i := range groups {
		groups[i] = quarters{a: ymm[4*i], b: ymm[4*i+1], c: ymm[4*i+2], d: ymm[4*i+3], t: ymm[12+i]}
	}
	each := func(f func(v VecPhysical, offset int)) {
		for i, v := range ymm[:4*n] {
			f(v, first*rowBytes+i*vectorBytes)
		}
	}
	keep, mixing := fmt.Sprint("keep", first), fmt.Sprint("rows", first)
	TESTB(a.keep, a.keep)
	JNZ(LabelRef(keep))
	each(func(v VecPhysical, offset int) {
		VMOVDQU(at(a.x, offset), v)
		VPXOR(at(a.y, offset), v, v)
		VMOVDQU(v, at(a.scratch, blockBytes+offset))
	})
	JMP(LabelRef(mixing))
	Label(keep)
	each(func(v VecPhysical, offset int) {
		t := ymm[12+offset/vectorBytes%3]
		VMOVDQU(at(a.x, offset), v)
		VPXOR(at(a.y, offset), v, v)
		VPXOR(at(a.out, offset), v, t)
		VMOVDQU(t, at(a.scratch, blockBytes+offset))
	})
	Label(mixing)
	// Word k of the turned vector is word k + distance of the vector.
	turn := func(distance int, v VecPhysical) {
		var order uint64
		for k := range 4 {
			order |= uint64((k+distance+4)%4) << (2 * k)
		}
		VPERMQ(Imm(order), v, v)
	}
	turnAll := func(direction int) {
		for _, g := range groups {
			turn(direction*turnA, g.a)
			turn(direction*turnD, g.d)
			turn(direction*turnC, g.c)
		}
	}
	mixYMM(groups, r24, func() { turnAll(1) })
	turnAll(-1)
	each(func(v VecPhysical, offset int) { VMOVDQU(v, at(a.scratch, offset)) })
}

// mixColumns mixes two columns, from the scratch memory into out, and returns the vector of row 0. Each row has one
// vector of the two, each column the same half of all eight vectors. So a quarter has two vectors: the first one holds
// the words 0 and 1 of each column, the second one the words 2 and 3.
func (a args) mixColumns(pair int, r24 Op) VecPhysical {
	Commentf("Columns %d and %d.", 2*pair, 2*pair+1)
	offset := func(row int) int { return row*rowBytes + pair*vectorBytes }
	for row := range rows {
		VMOVDQU(at(a.scratch, offset(row)), ymm[row])
	}
	groups := []quarters{{a: Y0, b: Y2, c: Y4, d: Y6, t: Y8}, {a: Y1, b: Y3, c: Y5, d: Y7, t: Y9}}
	one, two := &groups[0], &groups[1]
	turnAll := func(direction int) {
		turnPair(direction*turnA, &one.a, &two.a, &one.t)
		turnPair(direction*turnD, &one.d, &two.d, nil)
		turnPair(direction*turnC, &one.c, &two.c, &two.t)
	}
	mixYMM(groups, r24, func() { turnAll(1) })
	turnAll(-1)
	for row, v := range []VecPhysical{one.a, two.a, one.b, two.b, one.c, two.c, one.d, two.d} {
		VPXOR(at(a.scratch, blockBytes+offset(row)), v, v)
		VMOVDQU(v, at(a.out, offset(row)))
	}
	return one.a
}

// turnPair turns a quarter of two vectors: place k gets word k + distance. free becomes another register. Two places
// need no instruction, the vectors change their names.
func turnPair(distance int, p, q, free *VecPhysical) {
	if distance == 1 || distance == -1 { // (p0 p1) and (q0 q1) become (q1 p0) and (p1 q0)
		VPALIGNR(Imm(8), *q, *p, *free)
		VPALIGNR(Imm(8), *p, *q, *q)
		*p, *free = *free, *p
	}
	if distance != -1 {
		*p, *q = *q, *p
	}
}
