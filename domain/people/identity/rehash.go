package identity

import "context"

// Hashed is an account with the hash of an identity number, and the sealed number; nil if it is not stored.
type Hashed struct {
	UserID, Hash string
	Sealed       []byte
}

// Opener is the part of the keys that Rehash needs; keyring.Ring implements it.
type Opener interface {
	Open(sealed, ad []byte) ([]byte, error)
	StableHash(domain string, parts ...string) string
}

// HashDomain separates the hashes of identity numbers from others.
const HashDomain = "identity"

// Rehash migrates the hashes of all identity numbers to the steady key, from the sealed numbers. told receives the
// number of accounts processed. Rehash may be repeated, and changes nothing if nothing is to be done. left counts the
// accounts without a stored number: their hash is unchanged, and is not found after its key has ended.
func Rehash(ctx context.Context, store Store, keys Opener, told func(seen int)) (changed, left int, err error) {
	const most = 500
	after, seen := "", 0
	for {
		page, err := store.Hashed(ctx, after, most)
		if err != nil || len(page) == 0 {
			return changed, left, err
		}
		for _, h := range page {
			after = h.UserID
			if h.Sealed == nil {
				left++
				continue
			}
			number, err := keys.Open(h.Sealed, sealedFor(h.UserID))
			if err != nil {
				return changed, left, err
			}
			hash := keys.StableHash(HashDomain, string(number))
			if hash == h.Hash {
				continue
			}
			if err := store.Rehash(ctx, h.UserID, h.Hash, hash); err != nil {
				return changed, left, err
			}
			changed++
		}
		seen += len(page)
		told(seen)
	}
}
