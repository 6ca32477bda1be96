package keyring

import (
	"io/fs"
	"testing"
)

func TestPrivateFile(t *testing.T) {
	for _, c := range []struct {
		mode        fs.FileMode
		owner, self int
		fine        bool
	}{
		{0o600, 65532, 65532, true},
		{0o400, 65532, 65532, true},
		{0o440, 65532, 65532, false},
		{0o440, 0, 65532, true}, // a secret of Kubernetes under fsGroup
		{0o640, 0, 65532, true},
		{0o660, 0, 65532, false},
		{0o650, 0, 65532, false},
		{0o644, 0, 65532, false},
		{0o600, 0, 0, true},
		{0o640, 0, 0, false},
		{0o600, 1000, 0, true},
		{0o640, 1000, 65532, false},
		{0o640, -1, 65532, false},
	} {
		if got := private(c.mode, c.owner, c.self); got != c.fine {
			t.Errorf("mode %#o of %d for %d: %t", c.mode, c.owner, c.self, got)
		}
	}
}

// A key has a secret of 32 bytes and a known purpose.
func TestMaterialOfSecrets(t *testing.T) {
	for _, n := range []int{0, 31, 33} {
		if m, err := newMaterial(Hashing, make([]byte, n)); err == nil || m != nil {
			t.Errorf("a secret of %d bytes: %v", n, m)
		}
	}
	if m, err := newMaterial("other", make([]byte, 32)); err == nil || m != nil {
		t.Errorf("another purpose: %v", m)
	}
	for _, p := range purposes {
		m, err := newMaterial(p, make([]byte, 32))
		if err != nil || (m.private != nil) != (p == Signing) || (m.aead != nil) != (p == Sealing) ||
			(m.macs != nil) != (p == Hashing) || (m.secret != nil) != (p == Auditing) {
			t.Errorf("%s: %+v, %v", p, m, err)
		}
	}
}
