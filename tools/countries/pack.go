package main

import (
	"cmp"
	"encoding/binary"
	"maps"
	"slices"
)

// The format is described at table in outbound/geoip.
const (
	blockRows      = 32
	countryBefore  = 254
	countryFollows = 255
	entryFollows   = 255
)

// entry is a difference between two rows and a country, which repeat often.
type entry struct {
	difference uint64
	country    byte
}

// pack writes the rows of a table; the first one begins at 0.
func pack(rows []row) []byte {
	codes := map[string]byte{}
	for _, r := range rows {
		codes[r.country] = 0
	}
	sorted := slices.Sorted(maps.Keys(codes))
	out := []byte{byte(len(sorted))}
	for i, code := range sorted {
		codes[code] = byte(i)
		out = append(out, code...)
	}
	var blocks [][]step
	for part := range slices.Chunk(rows, blockRows) {
		blocks = append(blocks, steps(part, codes))
	}
	entries := chooseEntries(blocks)
	for _, e := range entries {
		out = append(binary.LittleEndian.AppendUint64(out, e.difference), e.country)
	}
	out = binary.LittleEndian.AppendUint32(out, uint32(len(blocks)))
	var packed []byte
	number := map[entry]byte{}
	for i, e := range entries {
		number[e] = byte(i)
	}
	for i, block := range blocks {
		out = binary.LittleEndian.AppendUint64(out, rows[i*blockRows].first)
		out = binary.LittleEndian.AppendUint32(out, uint32(len(packed)))
		packed = append(packed, codes[rows[i*blockRows].country])
		for _, s := range block {
			packed = s.append(packed, number)
		}
	}
	return append(out, packed...)
}

// step is a row as it follows from the rows before it in its block.
type step struct {
	entry        // its country is countryBefore if that is the same one
	country byte // its own
}

func steps(rows []row, codes map[string]byte) (all []step) {
	for i := 1; i < len(rows); i++ {
		own := codes[rows[i].country]
		short := own
		if i > 1 && rows[i].country == rows[i-2].country {
			short = countryBefore
		}
		all = append(all, step{entry{rows[i].first - rows[i-1].first, short}, own})
	}
	return all
}

func (s step) append(packed []byte, number map[entry]byte) []byte {
	if n, ok := number[s.entry]; ok {
		return append(packed, n)
	}
	if n, ok := number[entry{s.difference, countryFollows}]; ok {
		return append(packed, n, s.country)
	}
	return append(binary.AppendUvarint(append(packed, entryFollows), s.difference), s.country)
}

// chooseEntries returns the entries that make the rows shortest: the most frequent ones with a country, and of the
// other rows the most frequent differences. How many of each is tried in steps of 8.
func chooseEntries(blocks [][]step) (best []entry) {
	all := slices.Concat(blocks...)
	withCountry := map[entry]int{}
	for _, s := range all {
		withCountry[s.entry]++
	}
	full := frequent(withCountry)
	size := -1
	for n := 0; n <= entryFollows; n += 8 {
		chosen := full[:min(n, len(full))]
		without := map[entry]int{}
		for _, s := range all {
			if !slices.Contains(chosen, s.entry) {
				without[entry{s.difference, countryFollows}]++
			}
		}
		rest := frequent(without)
		entries := slices.Concat(chosen, rest[:min(entryFollows-len(chosen), len(rest))])
		if length := length(all, entries); size < 0 || length < size {
			best, size = entries, length
		}
	}
	return slices.Concat(best, make([]entry, entryFollows-len(best)))
}

func frequent(counts map[entry]int) []entry {
	return slices.SortedFunc(maps.Keys(counts), func(a, b entry) int {
		return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a.difference, b.difference),
			cmp.Compare(a.country, b.country))
	})
}

func length(all []step, entries []entry) (n int) {
	number := map[entry]byte{}
	for i, e := range entries {
		number[e] = byte(i)
	}
	var buffer []byte
	for _, s := range all {
		buffer = s.append(buffer[:0], number)
		n += len(buffer)
	}
	return n
}
