package keyring

import "testing"

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
