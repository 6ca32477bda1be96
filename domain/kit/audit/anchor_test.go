package audit

import (
	"bytes"
	"strings"
	"testing"
)

// An anchor is read from its own text, and from no other.
func TestAnchorText(t *testing.T) {
	a := Anchor{Counter: 7, MAC: bytes.Repeat([]byte{0xab}, 32)}
	got, err := ParseAnchor(a.String())
	if err != nil || got.Counter != 7 || !bytes.Equal(got.MAC, a.MAC) || a.String() != "7:"+strings.Repeat("ab", 32) {
		t.Errorf("%s, %v", got, err)
	}
	mac := strings.Repeat("ab", 32)
	if _, err := ParseAnchor("1:" + mac); err != nil {
		t.Error(err)
	}
	for _, text := range []string{"", "7", "x:" + mac, "0:" + mac, "-1:" + mac, "7:" + mac + "ab", "7:" + mac[2:],
		"7:" + mac[1:] + "x", "7:" + mac + ":"} {
		if got, err := ParseAnchor(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}
