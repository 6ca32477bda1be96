package allowedip

import "testing"

func TestParse(t *testing.T) {
	for in, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "192.0.2.7/24": "192.0.2.0/24", "0.0.0.0/0": "0.0.0.0/0",
		"::ffff:192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7/120": "192.0.2.0/24",
		"2001:DB8::1": "2001:db8::1/128", "2001:db8:1:2:3::/48": "2001:db8:1::/48",
		"": "", "localhost": "", "192.0.2": "", "192.0.2.7/33": "", "192.0.2.07": "", "fe80::1%eth0": "",
		"fe80::%eth0/64": "", "::ffff:0.0.0.0/90": "", "192.0.2.7/": "", " 192.0.2.7": "", "192.0.2.7:80": "",
	} {
		got, err := Parse(in)
		if text := got.String(); err == nil && text != want || (err != nil) != (want == "") {
			t.Errorf("%q: %v, %v, want %q", in, got, err, want)
		}
	}
}
