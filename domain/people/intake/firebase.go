package intake

import (
	"encoding/json"

	"castellan/domain/account/password/legacy"
)

// firebaseUser is a user of "firebase auth:export".
type firebaseUser struct {
	ID            string `json:"localId"`
	Email         string `json:"email"`
	EmailVerified bool   `json:"emailVerified"`
	Hash          string `json:"passwordHash"`
	Salt          string `json:"salt"`
	Name          string `json:"displayName"`
	Phone         string `json:"phoneNumber"`
	Disabled      bool   `json:"disabled"`
	Factors       []struct {
		Phone string          `json:"phoneInfo"`
		TOTP  json.RawMessage `json:"totpInfo"`
	} `json:"mfaInfo"`
}

var firebaseShape = shapeOf(firebaseUser{})

func firebaseEntry(p legacy.Firebase) func([]byte) (Entry, error) {
	return func(text []byte) (Entry, error) {
		var f firebaseUser
		if err := decode(text, &f, false); err != nil {
			return Entry{}, err
		}
		e := Entry{ExternalID: f.ID, Email: f.Email, EmailVerified: f.EmailVerified, International: f.Phone,
			Status: state(f.Disabled)}
		e.Name, e.Surname = divided(f.Name)
		for _, factor := range f.Factors {
			switch {
			case factor.Phone != "":
				e.note("a second factor by SMS is not taken")
			case len(factor.TOTP) > 0:
				e.note("an authenticator is not taken")
			default:
				e.note("a second factor is not taken")
			}
		}
		if f.Hash == "" {
			return e, nil
		}
		h, err := p.Hash(f.Hash, f.Salt)
		e.Hash, err = hashOf(h, false, err)
		return e, err
	}
}
