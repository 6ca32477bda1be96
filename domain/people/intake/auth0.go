package intake

import (
	"encoding/hex"
	"errors"
	"strings"

	"castellan/domain/account/password/legacy"
)

// auth0User is a user of Auth0: of the bulk export (JSON lines), of the export of hashes, or of the schema of the bulk
// import.
type auth0User struct {
	UserID        string        `json:"user_id"`
	ID            any           `json:"_id"` // of the export of hashes: {"$oid":"…"}
	Email         string        `json:"email"`
	EmailVerified bool          `json:"email_verified"`
	Phone         string        `json:"phone_number"`
	Name          string        `json:"name"`
	Given         string        `json:"given_name"`
	Family        string        `json:"family_name"`
	Locale        string        `json:"locale"`
	Blocked       bool          `json:"blocked"`
	Hash          string        `json:"password_hash"`
	ExportedHash  string        `json:"passwordHash"`
	Custom        *auth0Hash    `json:"custom_password_hash"`
	Factors       []auth0Factor `json:"mfa_factors"`
}

var auth0Shape = shapeOf(auth0User{})

type auth0Factor struct {
	TOTP *struct {
		Secret string `json:"secret"`
	} `json:"totp"`
}

type auth0Hash struct {
	Algorithm string `json:"algorithm"`
	Hash      struct {
		Value    string `json:"value"`
		Encoding string `json:"encoding"`
		Digest   string `json:"digest"`
	} `json:"hash"`
	Salt struct {
		Value    string `json:"value"`
		Encoding string `json:"encoding"`
		Position string `json:"position"`
	} `json:"salt"`
	Password struct {
		Encoding string `json:"encoding"`
	} `json:"password"`
	Cost  int `json:"cost"` // of scrypt
	Block int `json:"blockSize"`
	Lanes int `json:"parallelization"`
}

func auth0Entry(text []byte) (Entry, error) {
	var a auth0User
	if err := decode(text, &a, false); err != nil {
		return Entry{}, err
	}
	e := Entry{ExternalID: a.UserID, Email: a.Email, EmailVerified: a.EmailVerified, International: a.Phone,
		Name: a.Given, Surname: a.Family, Language: shortLanguage(a.Locale), Status: state(false)}
	if oid, ok := a.ID.(map[string]any); ok && e.ExternalID == "" {
		if id, ok := oid["$oid"].(string); ok {
			e.ExternalID = "auth0|" + id // the user_id of the same user
		}
	}
	if e.Name == "" && e.Surname == "" && a.Name != a.Email {
		e.Name, e.Surname = divided(a.Name)
	}
	if a.Blocked {
		e.Status = "blocked"
	}
	for _, f := range a.Factors {
		switch {
		case f.TOTP == nil:
			e.note("a second factor other than an authenticator is not taken")
		case e.TOTP != "":
			e.note("a second authenticator is not taken")
		default:
			e.TOTP = f.TOTP.Secret
		}
	}
	var err error
	switch {
	case a.Custom != nil:
		e.Hash, err = a.Custom.read()
	case a.Hash != "":
		e.Hash, err = hashText(a.Hash)
	default:
		e.Hash, err = hashText(a.ExportedHash)
	}
	return e, err
}

// read returns the hash of custom_password_hash. Its value is a complete text (argon2, bcrypt, pbkdf2, scrypt in PHC
// form, LDAP), or a digest.
func (a auth0Hash) read() (Hash, error) {
	if a.Password.Encoding != "" && a.Password.Encoding != "utf8" {
		return Hash{}, errors.New("hash: the encoding of the password is not supported")
	}
	switch a.Algorithm {
	case "argon2", "bcrypt", "pbkdf2", "ldap":
		return hashText(a.Hash.Value)
	case "scrypt":
		if strings.HasPrefix(a.Hash.Value, "$") {
			return hashText(a.Hash.Value)
		}
	case "md5", "sha1", "sha256", "sha512":
	default:
		return Hash{}, errors.New(hashReason(legacy.ErrUnknown))
	}
	tag, err := auth0Bytes(a.Hash.Value, a.Hash.Encoding)
	if err != nil || a.Hash.Encoding == "utf8" {
		return Hash{}, errors.New(hashReason(legacy.ErrMalformed))
	}
	salt, err := auth0Bytes(a.Salt.Value, a.Salt.Encoding)
	if err != nil {
		return Hash{}, errors.New(hashReason(legacy.ErrMalformed))
	}
	p := legacy.Parts{Alg: a.Algorithm, Hash: hex.EncodeToString(tag), Salt: hex.EncodeToString(salt), Encoding: "hex"}
	if a.Algorithm == "scrypt" {
		p.N, p.R, p.P = uint64(max(a.Cost, 0)), uint32(max(a.Block, 0)), uint32(max(a.Lanes, 0))
	} else if p.Order = "salt-last"; a.Salt.Position == "prefix" {
		p.Order = "salt-first"
	}
	h, err := p.Read()
	return hashOf(h, false, err)
}

// auth0Bytes decodes a value of a hash or a salt.
func auth0Bytes(text, encoding string) ([]byte, error) {
	switch encoding {
	case "base64":
		return legacy.Base64(text)
	case "hex":
		return hex.DecodeString(text)
	case "utf8", "":
		return []byte(text), nil
	}
	return nil, legacy.ErrMalformed
}
