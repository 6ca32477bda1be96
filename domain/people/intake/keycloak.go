package intake

import (
	"cmp"
	"encoding/base32"
	"errors"
	"strconv"
	"strings"

	"castellan/domain/account/password/legacy"
	"castellan/domain/kit/sorting"
)

// keycloakUser is a user of a realm export.
type keycloakUser struct {
	ID            string               `json:"id"`
	Email         string               `json:"email"`
	EmailVerified bool                 `json:"emailVerified"`
	FirstName     string               `json:"firstName"`
	LastName      string               `json:"lastName"`
	Enabled       *bool                `json:"enabled"`
	Service       string               `json:"serviceAccountClientId"`
	Attributes    map[string]any       `json:"attributes"`
	Credentials   []keycloakCredential `json:"credentials"`
	Required      []string             `json:"requiredActions"`
}

var keycloakShape = shapeOf(keycloakUser{}).with("attributes",
	shape{"phonenumber": nil, "phone_number": nil, "phone": nil, "locale": nil})

type keycloakCredential struct {
	Type       string `json:"type"`
	Priority   int64  `json:"priority"` // the least number is the highest
	Temporary  bool   `json:"temporary"`
	Secret     string `json:"secretData"`     // JSON
	Credential string `json:"credentialData"` // JSON

	// Before version 8 the fields stood in the credential itself.
	Salted     string `json:"hashedSaltedValue"`
	Salt       string `json:"salt"`
	Iterations uint32 `json:"hashIterations"`
	Algorithm  string `json:"algorithm"`
	Digits     int    `json:"digits"`
	Period     int    `json:"period"`
	Value      string `json:"value"` // in plain text
}

type keycloakSecret struct {
	Value string `json:"value"`
	Salt  string `json:"salt"`
}

type keycloakData struct {
	Iterations uint32         `json:"hashIterations"`
	Algorithm  string         `json:"algorithm"`
	More       map[string]any `json:"additionalParameters"`
	SubType    string         `json:"subType"`
	Digits     int            `json:"digits"`
	Period     int            `json:"period"`
	Encoding   string         `json:"secretEncoding"`
}

// read returns secret and data of a credential of any version.
func (c keycloakCredential) read() (secret keycloakSecret, data keycloakData, err error) {
	switch {
	case c.Value != "" && c.Salted == "" && c.Secret == "":
		return secret, data, errors.New("credentials: are in plain text")
	case c.Salted != "":
		return keycloakSecret{c.Salted, c.Salt}, keycloakData{Iterations: c.Iterations, Algorithm: c.Algorithm,
			SubType: c.Type, Digits: c.Digits, Period: c.Period}, nil
	case decode([]byte(c.Secret), &secret, false) != nil, decode([]byte(c.Credential), &data, false) != nil:
		return secret, data, errors.New("credentials: are malformed")
	}
	return secret, data, nil
}

func keycloakEntry(text []byte) (Entry, error) {
	var k keycloakUser
	if err := decode(text, &k, false); err != nil {
		return Entry{}, err
	}
	if k.Service != "" {
		return Entry{}, errOther // an account of a program
	}
	e := Entry{ExternalID: k.ID, Email: k.Email, EmailVerified: k.EmailVerified, Name: k.FirstName, Surname: k.LastName,
		International: k.attribute("phoneNumber", "phone_number", "phone"), Language: shortLanguage(k.attribute("locale")),
		Status: state(k.Enabled != nil && !*k.Enabled)}
	k.require(&e)
	return e, k.authenticate(&e)
}

// require applies the actions that the user must take at the next login.
func (k keycloakUser) require(e *Entry) {
	for _, action := range k.Required {
		switch action {
		case "UPDATE_PASSWORD":
			e.MustReset = true
			e.note("the required action UPDATE_PASSWORD means that the password must be reset")
		case "VERIFY_EMAIL":
			e.EmailVerified = false
			e.note("the required action VERIFY_EMAIL means that the mail address is not verified")
		case "CONFIGURE_TOTP", "CONFIGURE_RECOVERY_AUTHN_CODES", "UPDATE_PROFILE", "VERIFY_PROFILE", "UPDATE_EMAIL",
			"TERMS_AND_CONDITIONS", "webauthn-register", "webauthn-register-passwordless":
			e.note("the required action " + action + " is not taken")
		default:
			e.note("a required action of another kind is not taken")
		}
	}
}

// authenticate takes the password and the authenticator of highest priority, and notes every other credential.
func (k keycloakUser) authenticate(e *Entry) error {
	sorting.Stable(k.Credentials, func(a, b keycloakCredential) int { return cmp.Compare(a.Priority, b.Priority) })
	password, authenticator := false, false
	for _, c := range k.Credentials {
		switch c.Type {
		case "password":
			if password {
				e.note("a second password is not taken")
				continue
			}
			if password = true; c.Temporary {
				e.MustReset = true
				e.note("the password is temporary and must be reset")
				continue
			}
		case "otp", "totp", "hotp":
			if authenticator {
				e.note("a second authenticator is not taken")
				continue
			}
			authenticator = true
		case "webauthn", "webauthn-passwordless":
			e.note("a passkey is not taken")
			continue
		case "recovery-authn-codes":
			e.note("recovery codes are not taken")
			continue
		case "password-history":
			continue
		default:
			e.note("a credential of another kind is not taken")
			continue
		}
		secret, data, err := c.read()
		if err != nil {
			return err
		}
		if c.Type == "password" {
			e.Hash, err = data.password(secret)
		} else {
			e.TOTP, err = data.otp(secret.Value)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// attribute returns the first value of the first attribute that the user has.
func (k keycloakUser) attribute(names ...string) string {
	for _, name := range names {
		if text := first(k.Attributes[name]); text != "" {
			return text
		}
	}
	return ""
}

// first returns a text, or the first one of a list.
func first(v any) string {
	if list, ok := v.([]any); ok && len(list) > 0 {
		v = list[0]
	}
	text, _ := v.(string)
	return text
}

func (d keycloakData) password(secret keycloakSecret) (Hash, error) {
	p := legacy.Parts{Hash: secret.Value, Salt: secret.Salt, Iterations: d.Iterations}
	switch d.Algorithm {
	case "pbkdf2":
		p.Alg = "pbkdf2-sha1"
	case "pbkdf2-sha256", "pbkdf2-sha512":
		p.Alg = d.Algorithm
	case "argon2":
		if first(d.More["version"]) != "1.3" {
			return Hash{}, errors.New(hashReason(legacy.ErrUnknown))
		}
		p.Alg, p.Passes = "argon2"+first(d.More["type"]), d.Iterations
		p.Memory, p.Lanes = small(first(d.More["memory"])), small(first(d.More["parallelism"]))
	default:
		return Hash{}, errors.New(hashReason(legacy.ErrUnknown))
	}
	h, err := p.Read()
	return hashOf(h, false, err)
}

// small reads a number; 0 for anything else, which no bound accepts.
func small(text string) uint32 {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0
	}
	return uint32(n)
}

// otp returns the secret in base32. The bytes of the secret are those of the text, unless an encoding is named.
func (d keycloakData) otp(value string) (string, error) {
	if d.SubType != "totp" || d.Digits != 6 || d.Period != 30 || d.Algorithm != "HmacSHA1" {
		return "", errors.New("totpSecret: only time-based codes of SHA-1 with 6 digits every 30 seconds are supported")
	}
	switch strings.ToUpper(d.Encoding) {
	case "":
		return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte(value)), nil
	case "BASE32":
		return value, nil
	}
	return "", errors.New("totpSecret: the encoding is not supported")
}
