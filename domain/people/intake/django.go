package intake

import (
	"encoding/json"
	"strings"
)

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

var djangoShape = shape{"model": nil, "pk": nil, "fields": shapeOf(djangoUser{})}

// djangoFactors are models of django-otp, two-factor-auth, allauth and their like, by the ends of their names.
var djangoFactors = map[string]string{"totpdevice": "an authenticator is not taken",
	"hotpdevice": "an authenticator is not taken", "staticdevice": "recovery codes are not taken",
	"statictoken": "a recovery code is not taken", "recoverycode": "a recovery code is not taken",
	"emaildevice": "a second factor by mail is not taken", "phonedevice": "a second factor by SMS is not taken",
	"twiliosmsdevice": "a second factor by SMS is not taken", "webauthndevice": "a passkey is not taken",
	"u2fdevice": "a passkey is not taken", "userkey": "a passkey is not taken",
	"yubikeydevice": "a second factor is not taken", "remoteyubikeydevice": "a second factor is not taken",
	"authenticator": "a second factor is not taken", "mfakey": "a second factor is not taken",
	"mfamethod": "a second factor is not taken", "trustedagent": "a remembered device is not taken",
	"trusteddevice": "a remembered device is not taken"}

func djangoEntry(text []byte) (Entry, error) {
	var o djangoObject
	if err := decode(text, &o, false); err != nil {
		return Entry{}, err
	}
	_, model, _ := strings.Cut(strings.ToLower(o.Model), ".")
	if what, factor := djangoFactors[model]; factor {
		return Entry{Other: true, Notes: []string{what}}, nil
	}
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
