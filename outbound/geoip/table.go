package geoip

import (
	"bytes"
	_ "embed"
	"encoding/binary"
	"math"
	"net/netip"
)

//go:generate go -C ../../tools run ./countries ../outbound/geoip

// table maps numbers to countries. It reads the bytes of the program as they are: the rows are never unpacked.
//
// A row is the first number of a range and its country; the range ends at the next row. Rows are in blocks of 32. A
// block is found by binary search in the index and then read from its start. tools/countries writes a table:
//
//   - a line of text with the source and the licence
//   - the number of countries, one byte, and their codes, two letters each
//   - 255 entries of 9 bytes: the difference to the row before, and a country
//   - the number of blocks, four bytes, and the index, 12 bytes for each block: its first number, and the place of its
//     rows behind the index
//   - the rows. The first of a block is its country, one byte. Each other row is the number of an entry, or 255 and
//     the difference as a varint; the country follows if the entry does not contain it.
//
// Integers are little-endian. A country is the position of its code, or one of the values below.
type table struct {
	codes   string
	entries [entryFollows + 1]entry // one for each byte
	index   []byte
	rows    []byte
}

// entry is a frequent step from one row to the next.
type entry struct {
	difference uint64
	country    uint16
	size       uint16 // bytes of the row; 0 if the difference is a varint
}

const (
	countryBefore  = 254 // the country of the row before the last one
	countryFollows = 255 // the last byte of the row
	entryFollows   = 255 // the difference is a varint

	entryBytes = 9
	indexBytes = 12
)

//go:embed ipv4.table
var packed4 []byte

//go:embed ipv6.table
var packed6 []byte

var table4, table6 = newTable(packed4), newTable(packed6)

func newTable(packed []byte) (t table) {
	packed = packed[bytes.IndexByte(packed, '\n')+1:]
	next := func(n int) (part []byte) {
		part, packed = packed[:n:n], packed[n:]
		return part
	}
	t.codes = string(next(2 * int(next(1)[0])))
	for i := range t.entries[:entryFollows] {
		e := next(entryBytes)
		t.entries[i] = entry{binary.LittleEndian.Uint64(e), uint16(e[8]), 1}
		if e[8] == countryFollows {
			t.entries[i].size = 2
		}
	}
	t.entries[entryFollows].country = countryFollows
	t.index = next(indexBytes * int(binary.LittleEndian.Uint32(next(4))))
	t.rows = packed
	return t
}

// country returns the code of an address as the source writes it; "ZZ" if it is in no country. An IPv6 address has the
// country of the first address of its /64.
func country(a netip.Addr) string {
	if a = a.Unmap(); a.Is4() {
		b := a.As4()
		code, _ := table4.find(uint64(binary.BigEndian.Uint32(b[:])))
		return code
	}
	b := a.As16()
	code, _ := table6.find(binary.BigEndian.Uint64(b[:]))
	return code
}

// find returns the country of a number, and the last number of its range.
func (t *table) find(n uint64) (code string, last uint64) {
	low, high := 0, len(t.index)/indexBytes // the block begins at or below n; the first one begins at 0
	for high-low > 1 {
		if middle := (low + high) / 2; t.first(middle) <= n {
			low = middle
		} else {
			high = middle
		}
	}
	rows, last := t.rows[t.place(low):], uint64(math.MaxUint64)
	if high < len(t.index)/indexBytes {
		rows, last = t.rows[t.place(low):t.place(high)], t.first(high)-1
	}
	at, current, before := t.first(low), uint16(rows[0]), uint16(0)
	for i := 1; i < len(rows); {
		e := &t.entries[rows[i]]
		difference, size := e.difference, int(e.size)
		if size == 0 {
			difference, size = binary.Uvarint(rows[i+1:])
			size += 2
		}
		if at += difference; at > n {
			last = at - 1
			break
		}
		i += size
		next := uint16(rows[i-1]) // conditional moves, because branches would be mispredicted
		if e.country != countryFollows {
			next = e.country
		}
		if next == countryBefore {
			next = before
		}
		current, before = next, current
	}
	return t.codes[2*current:][:2], last
}

func (t *table) first(block int) uint64 {
	return binary.LittleEndian.Uint64(t.index[block*indexBytes:])
}

func (t *table) place(block int) uint32 {
	return binary.LittleEndian.Uint32(t.index[block*indexBytes+8:])
}
