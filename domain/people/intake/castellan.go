package intake

import (
	"bytes"
	"encoding/json"

	"castellan/domain/account/password/legacy"
)

// line is a user in the castellan format. Export writes the same type.
type line struct {
	ExternalID    string `json:"externalId,omitempty"`
	Email         string `json:"email,omitempty"`
	EmailVerified bool   `json:"emailVerified,omitempty"`
	CountryCode   string `json:"countryCode,omitempty"`
	Phone         string `json:"phoneNumber,omitempty"`
	Name          string `json:"name,omitempty"`
	Surname       string `json:"surname,omitempty"`
	Language      string `json:"language,omitempty"`
	Status        string `json:"status,omitempty"`
	// Hash is a text, or an object of legacy.Parts.
	Hash json.RawMessage `json:"hash,omitempty"`
	TOTP string          `json:"totpSecret,omitempty"`
}

func castellanEntry(text []byte) (Entry, error) {
	var l line
	if err := decode(text, &l, true); err != nil {
		return Entry{}, err
	}
	h, err := hashField(l.Hash)
	return Entry{ExternalID: l.ExternalID, Email: l.Email, EmailVerified: l.EmailVerified, CountryCode: l.CountryCode,
		Phone: l.Phone, Name: l.Name, Surname: l.Surname, Language: l.Language, Status: l.Status, Hash: h, TOTP: l.TOTP}, err
}

// hashField reads a hash as a text or as an object.
func hashField(raw json.RawMessage) (Hash, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || string(raw) == "null" {
		return Hash{}, nil
	}
	if raw[0] != '{' {
		var text string
		if err := decode(raw, &text, true); err != nil {
			return Hash{}, err
		}
		return hashText(text)
	}
	var p legacy.Parts
	if err := decode(raw, &p, true); err != nil {
		return Hash{}, err
	}
	h, err := p.Read()
	return hashOf(h, false, err)
}
