package code_test

import (
	"strings"
	"testing"

	"castellan/domain/kit/code"
)

func TestCheck(t *testing.T) {
	for text, valid := range map[string]bool{
		"AB": true, "A1_": true, "A" + strings.Repeat("Z", 63): true, "": false, "A": false, "1A": false, "_A": false,
		"Ab": false, "A B": false, "ÇA": false, "AB\n": false, "A" + strings.Repeat("Z", 64): false,
	} {
		ps := code.Check("code", text)
		if (len(ps) == 0) != valid || !valid && ps[0].Field != "code" {
			t.Errorf("%q: %v", text, ps)
		}
	}
}
