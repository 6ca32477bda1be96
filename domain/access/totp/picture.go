package totp

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"fmt"
	"image"
	"image/color"
	"image/png"

	"github.com/pquerna/otp"
	"github.com/pquerna/otp/totp"

	"castellan/domain/access/user"
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

// access returns the forms of a secret. It draws a picture, which takes milliseconds: call it outside transactions.
func access(issuer string, u user.User, secret []byte) (Access, error) {
	key, err := totp.Generate(totp.GenerateOpts{Issuer: issuer, AccountName: cmp.Or(u.Email, u.Phone, u.ID),
		Period: periodSeconds, Secret: secret,
		Digits: otp.DigitsSix, Algorithm: otp.AlgorithmSHA1})
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
	return Access{Base32: key.Secret(), URL: key.URL(), QRDataURL: "data:image/png;base64," +
		base64.StdEncoding.EncodeToString(b.Bytes())}, nil
}
