// Countries writes the tables of outbound/geoip, which map addresses to countries, from the data of the module
// github.com/phuslu/iploc. That is IP2Location LITE under CC BY-SA 4.0 (outbound/geoip/LICENSE). Its date is the
// version of the module in tools/go.mod. To update the tables, raise that version and run make generate.
//
// The program also writes testdata/answers.sha256: a digest of what iploc answers at each border of two countries and
// beside it. The test of outbound/geoip compares its own answers with it.
//
// Start reading at run and pack.
package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/phuslu/iploc"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: countries FOLDER, such as: countries ../outbound/geoip")
		os.Exit(2)
	}
	if err := run(os.Args[1]); err != nil {
		fmt.Fprintf(os.Stderr, "countries: %v\n", err)
		os.Exit(1)
	}
}

func run(folder string) error {
	v4, v6, err := read()
	if err != nil {
		return err
	}
	line := "IP2Location LITE by way of github.com/phuslu/iploc " + iploc.Version + ", CC BY-SA 4.0, see LICENSE\n"
	sums := fmt.Sprintf("%x  ipv4.table\n%x  ipv6.table\n", digest(v4, address4), digest(v6, address6))
	return errors.Join(
		os.WriteFile(filepath.Join(folder, "ipv4.table"), append([]byte(line), pack(v4)...), 0o644),
		os.WriteFile(filepath.Join(folder, "ipv6.table"), append([]byte(line), pack(v6)...), 0o644),
		os.WriteFile(filepath.Join(folder, "testdata", "answers.sha256"), []byte(sums), 0o644),
	)
}

// row is the first number of a range of addresses, and its country: of IPv4 the address, of IPv6 its upper 64 bits.
type row struct {
	first   uint64
	country string
}

func address4(n uint64) netip.Addr {
	var b [4]byte
	binary.BigEndian.PutUint32(b[:], uint32(n))
	return netip.AddrFrom4(b)
}

func address6(n uint64) netip.Addr {
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], n)
	return netip.AddrFrom16(b)
}

// read returns the rows of both families, where two neighbours differ.
func read() (v4, v6 []row, err error) {
	firsts4, firsts6, err := source()
	if err != nil {
		return nil, nil, err
	}
	for _, n := range firsts4 {
		v4 = add(v4, uint64(n))
	}
	// A range that begins inside a /64 may end behind it.
	for _, n := range firsts6 {
		upper, lower := n[0], n[1]
		v6 = add6(v6, upper)
		if lower > 0 {
			v6 = add6(v6, upper+1)
		}
	}
	return v4, v6, nil
}

func add(rows []row, n uint64) []row {
	return join(rows, row{n, iploc.IPCountry(address4(n))})
}

func add6(rows []row, n uint64) []row {
	if n == 0 { // the rest of the first /64 is a copy of the table of IPv4
		return join(rows, row{0, "ZZ"})
	}
	return join(rows, row{n, iploc.IPCountry(address6(n))})
}

// join appends a row that begins behind the last one and has another country.
func join(rows []row, next row) []row {
	if len(rows) > 0 && (rows[len(rows)-1].country == next.country || next.first <= rows[len(rows)-1].first) {
		return rows
	}
	return append(rows, next)
}

// source reads the first address of each row from the files of the module, which exports a lookup only.
func source() (v4 []uint32, v6 [][2]uint64, err error) {
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/phuslu/iploc").Output()
	if err != nil {
		return nil, nil, fmt.Errorf("go list: %w", err)
	}
	folder := strings.TrimSpace(string(out))
	content, err := os.ReadFile(filepath.Join(folder, "ipv4le.bin"))
	if err != nil {
		return nil, nil, err
	}
	for ; len(content) >= 4; content = content[4:] {
		v4 = append(v4, binary.LittleEndian.Uint32(content))
	}
	f, err := os.Open(filepath.Join(folder, "ipv6le.gz"))
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	unpacked, err := gzip.NewReader(f)
	if err != nil {
		return nil, nil, err
	}
	if content, err = io.ReadAll(unpacked); err != nil {
		return nil, nil, err
	}
	for ; len(content) >= 16; content = content[16:] {
		v6 = append(v6, [2]uint64{binary.LittleEndian.Uint64(content), binary.LittleEndian.Uint64(content[8:])})
	}
	return v4, v6, nil
}

// digest sums what iploc answers at the first number of each row, and at the numbers before and after it.
func digest(rows []row, address func(uint64) netip.Addr) []byte {
	sum := sha256.New()
	for _, r := range rows {
		for n := max(r.first, 1) - 1; n <= r.first+1; n++ {
			country := "ZZ"
			if n > 0 || address(0).Is4() {
				country = iploc.IPCountry(address(n))
			}
			sum.Write(append(binary.LittleEndian.AppendUint64(nil, n), country...))
		}
	}
	return sum.Sum(nil)
}
