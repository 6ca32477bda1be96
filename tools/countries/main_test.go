package main

import (
	"encoding/binary"
	"net/netip"
	"sort"
	"testing"

	"github.com/phuslu/iploc"
)

// At the first address of each row of iploc, and at the addresses (of IPv6 the /64) before and after it, the rows that
// are packed give the same country. The IPv4-mapped addresses of IPv6 have no rows: their countries are those of IPv4.
func TestRows(t *testing.T) {
	v4, v6, err := read()
	if err != nil {
		t.Fatal(err)
	}
	firsts4, firsts6, err := source()
	if err != nil {
		t.Fatal(err)
	}
	if len(firsts4) < 100_000 || len(firsts6) < 100_000 {
		t.Fatalf("%d and %d rows were read", len(firsts4), len(firsts6))
	}
	faults := 0
	check := func(a netip.Addr, rows []row, n uint64) {
		want, got := iploc.IPCountry(a), find(rows, n)
		if got != want && faults < 10 {
			faults++
			t.Errorf("%s: %s, want %s", a, got, want)
		}
	}
	for _, first := range firsts4 {
		for n := max(first, 1) - 1; n <= first+1; n++ {
			check(address4(uint64(n)), v4, uint64(n))
			mapped := [16]byte{10: 0xff, 11: 0xff}
			binary.BigEndian.PutUint32(mapped[12:], n)
			check(netip.AddrFrom16(mapped), v4, uint64(n))
		}
	}
	for _, first := range firsts6 {
		if first[0] == 0 {
			continue
		}
		for n := first[0] - 1; n <= first[0]+1; n++ {
			if n > 0 {
				check(address6(n), v6, n)
			}
		}
	}
}

func find(rows []row, n uint64) string {
	return rows[sort.Search(len(rows), func(i int) bool { return rows[i].first > n })-1].country
}
