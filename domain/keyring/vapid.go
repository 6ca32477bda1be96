package keyring

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"strconv"
)

// VAPID returns the P-256 key by which push services know this service (RFC
// 8292). Subscriptions are made for its public half and die with it, so it must
// outlive every rotation and be the same on all nodes: it is derived from the
// oldest hashing key, which is kept for ever. The caller must not change it.
func (r *Ring) VAPID() *ecdsa.PrivateKey {
	keys := r.view.Load().hashing
	oldest := keys[len(keys)-1]
	for i := 0; ; i++ { // one sum in 2^32 is no scalar of the curve
		if key, err := ecdsa.ParseRawPrivateKey(elliptic.P256(), oldest.sum("vapid", []string{strconv.Itoa(i)})); err == nil {
			return key
		}
	}
}
