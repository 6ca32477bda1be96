package keyring

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"strconv"
)

// VAPIDs returns the P-256 keys that identify this service to push services (RFC 8292): first the key for new
// subscriptions, then earlier keys that have not ended. A subscription is bound to one public key, so all nodes have
// the same key. It outlives every rotation except the replacement of a leaked key, because it is derived from the
// steady hashing key. The caller must not change the keys.
func (r *Ring) VAPIDs() []*ecdsa.PrivateKey {
	keys := r.view.Load().stableKeys(r.now())
	out := make([]*ecdsa.PrivateKey, len(keys))
	for i, k := range keys {
		out[i] = k.vapid()
	}
	return out
}

func (k *key) vapid() *ecdsa.PrivateKey {
	for i := 0; ; i++ { // one sum in 2^32 is not a scalar of the curve
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), k.sum("vapid", []string{strconv.Itoa(i)})); err == nil {
			return key
		}
	}
}
