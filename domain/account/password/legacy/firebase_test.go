package legacy

import (
	"bytes"
	"encoding/base64"
	"errors"
	"testing"
)

// The parameters of a Firebase project are bounded like those of any other hash.
func TestFirebaseParameters(t *testing.T) {
	encoded := func(b byte) string { return base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{b}, 64)) }
	key, tag, salt := encoded(1), encoded(9), "EBESExQVFhc="
	f := Firebase{SignerKey: key, SaltSeparator: "Bw==", Rounds: 8, MemCost: 14}
	h, err := f.Hash(tag, salt)
	if err != nil || h.Alg != FirebaseScrypt || h.Cost != 14 || h.Memory != 8 || h.Lanes != 1 || len(h.Tag) != 64 ||
		h.Tag[0] != 8 || len(h.Salt) != 9 || h.Salt[8] != 7 {
		t.Errorf("%+v, %v", h, err)
	}
	f.MemCost = 31
	if _, err := f.Hash(tag, salt); !errors.Is(err, ErrCost) {
		t.Errorf("a cost of 31: %v", err)
	}
	f.MemCost = 14
	for name, c := range map[string][2]string{"a short tag": {"CAk=", salt}, "no base64": {tag, "!"},
		"no tag": {"", salt}} {
		if h, err := f.Hash(c[0], c[1]); !errors.Is(err, ErrMalformed) || h.Tag != nil {
			t.Errorf("%s: %+v, %v", name, h, err)
		}
	}
	f.SignerKey = ""
	if _, err := f.Hash("", salt); !errors.Is(err, ErrMalformed) {
		t.Errorf("no key: %v", err)
	}
}
