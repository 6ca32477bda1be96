package totp

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/url"
	"strings"

	"github.com/pquerna/otp"

	"castellan/domain/account/user"
)

// Access is a secret in the three forms that apps accept (section 4.2 of the interface). It is as sensitive as the
// secret.
type Access struct {
	Base32    string
	URL       string // otpauth://totp/…
	QRDataURL string // the URL as a PNG, usable as the source of an image
}

// The picture, in pixels. A reader needs a light margin of four modules on a page that may be dark. The code may be
// up to 125 modules wide.
const (
	drawnPixels  = 256
	marginPixels = 24
)

// safe restores what QueryEscape escapes without need, or as a form only.
var safe = strings.NewReplacer("+", "%20", "%40", "@")

// keyURI is the text that an authenticator app reads, and the content of the picture. Apps decode its parts by the rule
// of a path or by that of a form. So no part has a character that the two read differently, such as a plus, or that
// ends a part, such as an ampersand.
func keyURI(issuer, account, secret string) string {
	escape := func(s string) string { return safe.Replace(url.QueryEscape(s)) }
	return fmt.Sprintf("otpauth://totp/%s:%s?algorithm=SHA1&digits=6&issuer=%s&period=%d&secret=%s", escape(issuer),
		escape(account), escape(issuer), periodSeconds, secret)
}

// access returns the forms of a secret. It draws a picture, which takes milliseconds: call it outside transactions.
func access(issuer string, u user.User, secret []byte) (Access, error) {
	encoded := FormatSecret(secret)
	key, err := otp.NewKeyFromURL(keyURI(issuer, cmp.Or(u.Email, u.Phone, u.ID), encoded))
	if err != nil {
		return Access{}, fmt.Errorf("authenticator url: %w", err)
	}
	drawn, err := key.Image(drawnPixels, drawnPixels)
	if err != nil {
		return Access{}, fmt.Errorf("authenticator picture: %w", err)
	}
	// Two colours instead of the library's 65536 greys: a tenth of the bytes.
	size := drawnPixels + 2*marginPixels
	picture := image.NewPaletted(image.Rect(0, 0, size, size), color.Palette{color.White, color.Black})
	for y := range drawnPixels {
		for x := range drawnPixels {
			if r, _, _, _ := drawn.At(x, y).RGBA(); r < 1<<15 {
				picture.SetColorIndex(x+marginPixels, y+marginPixels, 1)
			}
		}
	}
	var b bytes.Buffer
	if err := png.Encode(&b, picture); err != nil {
		return Access{}, fmt.Errorf("authenticator picture: %w", err)
	}
	return Access{Base32: encoded, URL: key.URL(), QRDataURL: "data:image/png;base64," +
		base64.StdEncoding.EncodeToString(b.Bytes())}, nil
}
