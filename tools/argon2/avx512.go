package main

import (
	"fmt"
	"slices"

	. "github.com/mmcloughlin/avo/build"
	. "github.com/mmcloughlin/avo/operand"
	. "github.com/mmcloughlin/avo/reg"
)

// AVX-512 (F only): a vector has eight words, and sixteen of the 32 registers hold the whole block. Each holds the same
// quarter of two adjacent rows. All sixteen words of a column are at the same place of four of these vectors, whatever
// the order within the vectors. So the rows are not turned back: the tables of the turns of the columns and of the last
// step include it. The generator keeps the number of each word at its place and derives the tables from it.

const lanes = 8 // words of a vector

// content is the word of the block at each place of a register.
type content [lanes]int

// state is the block in registers, by pair of rows and quarter.
type state [4][4]struct {
	VecPhysical
	content
}

var (
	blockRegisters = [4][4]VecPhysical{{Z0, Z1, Z2, Z3}, {Z4, Z5, Z6, Z7}, {Z8, Z9, Z10, Z11}, {Z12, Z13, Z14, Z15}}
	free           = []VecPhysical{Z16, Z17, Z18, Z19, Z20, Z21, Z22, Z23}
)

func avx512() {
	args := entry("compressAVX512",
		"compressAVX512 is compress with AVX-512F, and fetches the reference of the next block. It uses no scratch memory.")
	s := args.load()
	rowPairs := make([]quarters, 4)
	for i, v := range s {
		rowPairs[i] = quarters{v[0].VecPhysical, v[1].VecPhysical, v[2].VecPhysical, v[3].VecPhysical, free[i]}
	}
	Comment("Rows.")
	roundZMM(rowPairs)
	s.turnRows()
	roundZMM(rowPairs)

	columnPairs := make([]quarters, 4)
	for j := range columnPairs {
		columnPairs[j] = quarters{s[0][j].VecPhysical, s[1][j].VecPhysical, s[2][j].VecPhysical, s[3][j].VecPhysical, free[j]}
	}
	Comment("Columns 0 and 1.")
	roundZMM(columnPairs[:1])
	s.turnColumns(0, 1)
	roundZMM(columnPairs[:1])
	args.firstWord(s)
	args.chase()
	Comment("The other columns.")
	roundZMM(columnPairs[1:])
	s.turnColumns(1, 4)
	roundZMM(columnPairs[1:])

	TESTB(args.keep, args.keep)
	JNZ(LabelRef("keep"))
	args.store(s, false)
	VZEROUPPER()
	RET()
	Label("keep")
	args.fetchOld()
	args.store(s, true)
	VZEROUPPER()
	RET()
}

// load reads x ^ y.
func (a args) load() *state {
	Comment("x ^ y, with the same quarter of two rows in a register.")
	s := &state{}
	for pair := range s {
		for i := range 4 { // the halves of the two rows
			offset := 2*pair*rowBytes + i*lanes*wordBytes
			VMOVDQU64(at(a.x, offset), free[i])
			VPXORQ(at(a.y, offset), free[i], free[i])
		}
		for quarter := range s[pair] {
			v := &s[pair][quarter]
			v.VecPhysical = blockRegisters[pair][quarter]
			order := []uint64{0b01_00_01_00, 0b11_10_11_10}[quarter%2] // the lower or the upper halves of both
			VSHUFI64X2(Imm(order), free[2+quarter/2], free[quarter/2], v.VecPhysical)
			for i := range v.content {
				v.content[i] = (2*pair+i/4)*rowWords + 4*quarter + i%4
			}
		}
	}
	return s
}

// roundZMM mixes the groups once.
func roundZMM(groups []quarters) {
	for _, right := range [][2]uint64{{32, 24}, {16, 63}} {
		half(groups,
			func(g quarters) { VPXORQ(g.a, g.d, g.d) }, func(g quarters) { VPRORQ(Imm(right[0]), g.d, g.d) },
			func(g quarters) { VPXORQ(g.c, g.b, g.b) }, func(g quarters) { VPRORQ(Imm(right[1]), g.b, g.b) })
	}
}

// turnRows turns the quarters of all rows, within their halves of a register.
func (s *state) turnRows() {
	for quarter, distance := range []int{turnA, 0, turnC, turnD} {
		if distance == 0 {
			continue
		}
		var order uint64
		for k := range 4 {
			order |= uint64((k+distance+4)%4) << (2 * k)
		}
		for pair := range s {
			v := &s[pair][quarter]
			VPERMQ(Imm(order), v.VecPhysical, v.VecPhysical)
			before := v.content
			for i := range v.content {
				v.content[i] = before[i/4*4+(i+distance+4)%4]
			}
		}
	}
}

// columnOf returns the column of a word, and its number among the sixteen words of the column.
func columnOf(word int) (column, number int) {
	return word % rowWords / 2, word/rowWords*2 + word%2
}

// turnColumns turns the quarters of columns: those in the vectors from to until of each pair of rows.
func (s *state) turnColumns(from, until int) {
	for quarter, distance := range []int{turnA, 0, turnC, turnD} {
		for j := from; j < until && distance != 0; j++ {
			v := &s[quarter][j]
			var order []int
			var turned content
			for i, word := range v.content {
				column, number := columnOf(word)
				next := number/4*4 + (number+distance+4)%4
				source := slices.IndexFunc(v.content[:], func(w int) bool {
					c, n := columnOf(w)
					return c == column && n == next
				})
				order, turned[i] = append(order, source), v.content[source]
			}
			v.content = turned
			index := free[4+j]
			VMOVDQU64(table(order), index)
			VPERMQ(v.VecPhysical, index, v.VecPhysical)
		}
	}
}

// firstWord leaves the lower half of word 0 of the result in EAX.
func (a args) firstWord(s *state) {
	Comment("The low half of word 0.")
	v := s[0][0]
	VALIGNQ(Imm(uint64(slices.Index(v.content[:], 0))), v.VecPhysical, v.VecPhysical, free[4])
	VMOVD(free[4].(Vec).AsX(), EAX)
	XORL(at(a.x, 0), EAX)
	XORL(at(a.y, 0), EAX)
	TESTB(a.keep, a.keep)
	JZ(LabelRef("chase"))
	XORL(at(a.out, 0), EAX)
	Label("chase")
}

// store writes the result: the state in the order of the block, ^ x ^ y, and ^ the old content if that is kept.
func (a args) store(s *state, keep bool) {
	for n := range rows * rowWords / lanes {
		row, half := n/2, n%2
		low, high := s[row/2][2*half], s[row/2][2*half+1]
		var order []int
		for i := range lanes { // an index of 8 or more is of the second register
			order = append(order, slices.Index(append(low.content[:], high.content[:]...), n*lanes+i))
		}
		v, x := free[2*(n%4)], free[2*(n%4)+1]
		VMOVDQU64(table(order), v)
		VPERMI2Q(high.VecPhysical, low.VecPhysical, v)
		VMOVDQU64(at(a.x, n*lanes*wordBytes), x)
		VPTERNLOGQ(Imm(0b1001_0110), at(a.y, n*lanes*wordBytes), x, v) // v ^ x ^ y
		if keep {
			VPXORQ(at(a.out, n*lanes*wordBytes), v, v)
		}
		VMOVDQU64(v, at(a.out, n*lanes*wordBytes))
	}
}

var tables = map[string]Mem{}

// table defines the indices of a permutation, once.
func table(order []int) Mem {
	name := "order"
	for _, i := range order {
		if i < 0 {
			panic("a word is not where it should be")
		}
		name += fmt.Sprintf("%x", i)
	}
	t, ok := tables[name]
	if !ok {
		t = GLOBL(name, RODATA|NOPTR)
		for i, source := range order {
			DATA(i*wordBytes, U64(uint64(source)))
		}
		tables[name] = t
	}
	return t
}
