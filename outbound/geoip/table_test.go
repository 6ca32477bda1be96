package geoip

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"net/netip"
	"os"
	"testing"

	"castellan/domain/kit/storetest"
)

func TestEmbedded(t *testing.T) {
	for in, want := range map[string]string{
		"8.8.8.8": "US", "78.160.0.1": "TR", "193.0.6.139": "NL", "::ffff:78.160.0.1": "TR",
		"0.255.255.255": "", "1.0.0.0": "AU", "1.0.0.255": "AU", "1.0.1.0": "CN", "1.0.4.0": "AU",
		"223.255.254.255": "SG", "223.255.255.0": "AU", "223.255.255.255": "AU",
		"2001:4860:4860::8888": "US", "2001:218:0:2000::": "JP", "2001:218:0:2000::6": "JP",
		"2c0f:ffe7:ffff:ffff::": "", "2c0f:ffe8::": "NG", "2c0f:ffe8:ffff:ffff:ffff:ffff:ffff:ffff": "NG",
		"2c0f:ffe9::": "", "2c0f:fff0::1": "NG", "2c0f:fff1::": "", "3fff::1": "",
		"127.0.0.1": "", "10.1.2.3": "", "192.168.0.1": "", "0.0.0.0": "", "::": "", "::1": "", "::1.0.0.0": "",
		"fe80::1": "", "fd00::1": "", "224.0.0.1": "", "255.255.255.255": "",
	} {
		storetest.Equal(t, (Embedded{}).Country(addr(in)), want, in)
	}
	storetest.Equal(t, (Embedded{}).Country(netip.Addr{}), "", "no address")
	for _, in := range []string{"78.160.0.1", "2001:4860:4860::8888"} {
		a := addr(in)
		if n := testing.AllocsPerRun(100, func() { Embedded{}.Country(a) }); n > 0 {
			t.Errorf("%s: %v allocations", in, n)
		}
	}
}

// At each border of two countries and beside it, the tables answer what iploc answers. tools/countries wrote the digest
// of its answers.
func TestEveryBorder(t *testing.T) {
	want := storetest.Value(os.ReadFile("testdata/answers.sha256"))(t)
	if got := answers(&table4) + "  ipv4.table\n" + answers(&table6) + "  ipv6.table\n"; got != string(want) {
		t.Errorf("answers\n%swant\n%s", got, want)
	}
}

func answers(t *table) string {
	sum := sha256.New()
	for first := uint64(0); ; {
		for n := max(first, 1) - 1; n <= first+1; n++ {
			code, _ := t.find(n)
			sum.Write(append(binary.LittleEndian.AppendUint64(nil, n), code...))
		}
		_, last := t.find(first)
		if first = last + 1; first == 0 {
			return fmt.Sprintf("%x", sum.Sum(nil))
		}
	}
}
