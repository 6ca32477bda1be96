package picture_test

import (
	"bytes"
	"fmt"
	"image"
	"strings"
	"testing"

	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
)

// A picture is accepted with everything that cameras, telephones, scanners and galleries write after or around it. The
// picture for display is made of its pixels: no trailer, archive, film or page is left in it.
func TestHabits(t *testing.T) {
	d := picture.NewDecoder()
	for name, data := range picturetest.Habits() {
		format, err := d.Check(t.Context(), "f", data)
		if err != nil || format != picture.Sniff(data) {
			t.Errorf("%s: %s, %v", name, format, err)
			continue
		}
		p, err := d.Clean(t.Context(), "f", data)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		m, _, err := image.Decode(bytes.NewReader(p.Bytes))
		if err != nil || m.Bounds().Dx() != p.Width || p.Width < 16 {
			t.Errorf("%s: %d×%d, %v", name, p.Width, p.Height, err)
		}
		for _, gone := range []string{picturetest.Trailer, "PK\x03\x04", "ftyp", "SEFT", "adobe", "Exif", "<"} {
			if len(gone) > 1 && bytes.Contains(p.Bytes, []byte(gone)) {
				t.Errorf("%s: %q is left", name, gone)
			}
		}
		if _, err := d.Preview(t.Context(), "f", data); err != nil {
			t.Errorf("%s: preview: %v", name, err)
		}
	}
}

// The first frame of an animation is decoded as it is.
func TestFirstFrameOfWebP(t *testing.T) {
	for _, name := range []string{"animated.webp", "animated-alpha.webp", "animated-lossless.webp"} {
		p := clean(t, picturetest.Habits()[name])
		m, _, err := image.Decode(bytes.NewReader(p.Bytes))
		if err != nil || p.Width != 24 || p.Height != 16 {
			t.Fatalf("%s: %d×%d, %v", name, p.Width, p.Height, err)
		}
		left, _, _, _ := m.At(1, 8).RGBA()
		right, _, _, a := m.At(22, 8).RGBA()
		if opaque := name == "animated.webp"; right < left+0x2000 || (a == 0xffff) != opaque {
			t.Errorf("%s: red %x to %x, opacity %x", name, left, right, a)
		}
	}
}

// A picture of a telephone that is not read is refused with the way to a JPEG.
func TestUnsupportedPictures(t *testing.T) {
	avif := bytes.Replace(picturetest.HEIC(), []byte("heic"), []byte("avif"), 1)
	film := bytes.Replace(picturetest.HEIC(), []byte("heic"), []byte("mp42"), 1)
	for want, data := range map[string][]byte{"Most Compatible": picturetest.HEIC(), "is an AVIF picture": avif,
		"must be a PNG": film, "f: must be": picturetest.HEIC()[:11]} {
		_, err := picture.NewDecoder().Check(t.Context(), "f", data)
		if !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%q: %v, want %q", data, err, want)
		}
	}
}
