package geoip

import (
	"bytes"
	"encoding/binary"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
)

func addr(s string) netip.Addr { return netip.MustParseAddr(s) }

// A valid file is used, and read again when it changes.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "countries.mmdb")
	if _, err := Open(path); err == nil {
		t.Fatal("a missing file was opened")
	}
	put := func(content []byte, at int) {
		t.Helper()
		storetest.Must(t, os.WriteFile(path, content, 0o600))
		when := time.Unix(1_700_000_000+int64(at), 0)
		storetest.Must(t, os.Chtimes(path, when, when))
	}
	put([]byte("no database"), 0)
	if _, err := Open(path); err == nil {
		t.Fatal("nonsense was opened")
	}
	put(
		mmdb(
			map[byte]any{
				1: nested("TR"),
				2: flat("DE"),
				3: nested("XX"),
				4: flat("tr"),
				5: map[string]any{"registered_country": map[string]any{"iso_code": "FR"}},
			},
		),
		1,
	)
	f := storetest.Value(Open(path))(t)
	want := func(answers map[string]string) {
		t.Helper()
		for range 2 { // decoded, then cached
			for in, want := range answers {
				storetest.Equal(t, f.Country(addr(in)), want, in)
			}
		}
	}
	first := map[string]string{
		"1.2.3.4":     "TR",
		"2.0.0.1":     "DE",
		"3.0.0.1":     "",
		"4.0.0.1":     "",
		"5.0.0.1":     "",
		"6.0.0.1":     "",
		"127.0.0.1":   "",
		"2001:db8::1": "",
	}
	want(first)
	if changed, err := f.Refresh(); changed || err != nil {
		t.Errorf("an unchanged file: %v, %v", changed, err)
	}
	put([]byte("half a fi"), 2)
	if changed, err := f.Refresh(); changed || err == nil {
		t.Errorf("a broken file: %v, %v", changed, err)
	}
	if changed, err := f.Refresh(); changed || err != nil {
		t.Errorf("the same broken file again: %v, %v", changed, err)
	}
	want(first)
	storetest.Must(t, os.Remove(path))
	storetest.Fails(t, storetest.Err(f.Refresh()), "", "a file that is gone")
	want(first)
	put(mmdb(map[byte]any{1: flat("NL")}), 3)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 1000 {
				if got := f.Country(addr("1.2.3.4")); got != "TR" && got != "NL" {
					t.Errorf("meanwhile %q", got)
				}
			}
		})
	}
	if changed, err := f.Refresh(); !changed || err != nil {
		t.Errorf("a new file: %v, %v", changed, err)
	}
	all.Wait()
	want(map[string]string{"1.2.3.4": "NL", "2.0.0.1": ""})
}

func nested(code string) any {
	return map[string]any{"country": map[string]any{"iso_code": code}}
}
func flat(code string) any { return map[string]any{"country_code": code} }

// mmdb writes a database for IPv4 that distinguishes the first byte of addresses: a binary tree of eight levels, whose
// 256 leaves are records or empty.
func mmdb(records map[byte]any) []byte {
	const nodes = 255
	var data bytes.Buffer
	place := map[byte]uint32{}
	for b, r := range records {
		place[b] = uint32(data.Len())
		encode(&data, r)
	}
	var out bytes.Buffer
	leaf := func(n int) uint32 { // the children of the last level
		if at, ok := place[byte(n)]; ok {
			return nodes + 16 + at
		}
		return nodes
	}
	for n := range nodes { // node n has the children 2n+1 and 2n+2
		for _, child := range []int{2*n + 1, 2*n + 2} {
			v := uint32(child)
			if child >= nodes {
				v = leaf(child - nodes)
			}
			out.Write([]byte{byte(v >> 16), byte(v >> 8), byte(v)})
		}
	}
	out.Write(make([]byte, 16))
	out.Write(data.Bytes())
	out.WriteString("\xab\xcd\xefMaxMind.com")
	encode(
		&out,
		map[string]any{
			"node_count":                  uint32(nodes),
			"record_size":                 uint16(24),
			"ip_version":                  uint16(4),
			"database_type":               "Test",
			"languages":                   []string{},
			"binary_format_major_version": uint16(2),
			"binary_format_minor_version": uint16(0),
			"build_epoch":                 uint64(1_700_000_000),
		},
	)
	return out.Bytes()
}

// encode writes a value in the format of the data section.
func encode(w *bytes.Buffer, v any) {
	number := func(kind int, n uint64) {
		var b [8]byte
		binary.BigEndian.PutUint64(b[:], n)
		text := bytes.TrimLeft(b[:], "\x00")
		if kind > 7 { // an extended kind
			w.WriteByte(byte(len(text)))
			w.WriteByte(byte(kind - 7))
		} else {
			w.WriteByte(byte(kind<<5 | len(text)))
		}
		w.Write(text)
	}
	switch v := v.(type) {
	case string:
		if len(v) < 29 {
			w.WriteByte(byte(2<<5 | len(v)))
		} else {
			w.Write([]byte{2<<5 | 29, byte(len(v) - 29)})
		}
		w.WriteString(v)
	case uint16:
		number(5, uint64(v))
	case uint32:
		number(6, uint64(v))
	case uint64:
		number(9, v)
	case []string:
		w.Write([]byte{byte(len(v)), 11 - 7})
	case map[string]any:
		w.WriteByte(byte(7<<5 | len(v)))
		for k, e := range v {
			encode(w, k)
			encode(w, e)
		}
	}
}
