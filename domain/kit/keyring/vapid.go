package keyring

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"strconv"
)

// VAPIDs returns the P-256 keys by which push services know this service (RFC
// 8292): first the one that devices subscribe with, then those that they may have
// subscribed with and that have not ended. A subscription is made for one public
// half and dies with it, so the key is the same on all nodes and outlives every
// rotation but that of a key that became known: it is derived from the steady
// hashing key. The caller must not change them.
func (r *Ring) VAPIDs() []*ecdsa.PrivateKey {
	keys := r.view.Load().steadies(r.now())
	out := make([]*ecdsa.PrivateKey, len(keys))
	for i, k := range keys {
		out[i] = k.vapid()
	}
	return out
}

func (k *key) vapid() *ecdsa.PrivateKey {
	for i := 0; ; i++ { // one sum in 2^32 is no scalar of the curve
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), k.sum("vapid", []string{strconv.Itoa(i)})); err == nil {
			return key
		}
	}
}
