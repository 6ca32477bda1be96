package intake

import (
	"encoding/base32"
	"encoding/json"
	"errors"
	"strconv"
	"strings"

	"castellan/domain/access/password/legacy"
)

// keycloakUser is a user of a realm export. Fields without a counterpart here are ignored.
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
}

type keycloakCredential struct {
	Type       string `json:"type"`
	Secret     string `json:"secretData"`     // JSON
	Credential string `json:"credentialData"` // JSON
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
	for _, c := range k.Credentials {
		var secret keycloakSecret
		var data keycloakData
		if c.Type != "password" && c.Type != "otp" {
			continue
		}
		if decode([]byte(c.Secret), &secret, false) != nil || decode([]byte(c.Credential), &data, false) != nil {
			return e, errors.New("credentials: are malformed")
		}
		var err error
		if c.Type == "password" {
			e.Hash, err = data.password(secret)
		} else {
			e.TOTP, err = data.otp(secret.Value)
		}
		if err != nil {
			return e, err
		}
	}
	return e, nil
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
}

func firebaseEntry(p legacy.Firebase) func([]byte) (Entry, error) {
	return func(text []byte) (Entry, error) {
		var f firebaseUser
		if err := decode(text, &f, false); err != nil {
			return Entry{}, err
		}
		e := Entry{ExternalID: f.ID, Email: f.Email, EmailVerified: f.EmailVerified, International: f.Phone,
			Status: state(f.Disabled)}
		e.Name, e.Surname = divided(f.Name)
		if f.Hash == "" {
			return e, nil
		}
		h, err := p.Hash(f.Hash, f.Salt)
		e.Hash, err = hashOf(h, false, err)
		return e, err
	}
}

// djangoObject is an object of "manage.py dumpdata".
type djangoObject struct {
	Model  string          `json:"model"`
	Key    json.RawMessage `json:"pk"`
	Fields json.RawMessage `json:"fields"`
}

type djangoUser struct {
	Password string `json:"password"`
	Email    string `json:"email"`
	First    string `json:"first_name"`
	Last     string `json:"last_name"`
	Phone    string `json:"phone_number"`
	Active   *bool  `json:"is_active"`
}

func djangoEntry(text []byte) (Entry, error) {
	var o djangoObject
	if err := decode(text, &o, false); err != nil {
		return Entry{}, err
	}
	_, model, _ := strings.Cut(strings.ToLower(o.Model), ".")
	if !strings.HasSuffix(model, "user") {
		return Entry{}, errOther
	}
	var u djangoUser
	if err := decode(o.Fields, &u, false); err != nil {
		return Entry{}, err
	}
	e := Entry{ExternalID: strings.Trim(string(o.Key), `"`), Email: u.Email, International: u.Phone, Name: u.First,
		Surname: u.Last, Status: state(u.Active != nil && !*u.Active)}
	var err error
	e.Hash, err = djangoHash(u.Password)
	return e, err
}

// djangoHash reads the column password. 32 hexadecimal digits are an MD5 without a salt.
func djangoHash(text string) (Hash, error) {
	if len(text) == 32 && !strings.Contains(text, "$") {
		text = "md5$$" + text
	}
	return hashText(text)
}
