package picture_test

import (
	"bytes"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"testing"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
)

// A preview is small, upright, without metadata and never the uploaded bytes.
func TestPreview(t *testing.T) {
	d := picture.NewDecoder()
	for name, c := range map[string]struct {
		data          []byte
		width, height int
	}{
		"png": {picturetest.PNG(20, 10), 20, 10}, "webp": {picturetest.WebP(8, 8), 8, 8},
		"gif":    {picturetest.GIF(5, 7), 5, 7},
		"turned": {picturetest.WithEXIF(picturetest.JPEG(2500, 100), 6), 34, 834},
	} {
		p, err := d.Preview(t.Context(), "f", c.data)
		storetest.Must(t, err)
		got, err := jpeg.DecodeConfig(bytes.NewReader(p.Bytes))
		if err != nil || got.Width != c.width || got.Height != c.height || p.Width != c.width || p.Format != picture.JPEG ||
			bytes.Contains(p.Bytes, []byte("Exif")) {
			t.Errorf("%s: %dx%d, %v", name, got.Width, got.Height, err)
		}
	}
	glass := image.NewNRGBA(image.Rect(0, 0, 1300, 2)) // transparent: white
	for x := range 1300 {
		glass.SetNRGBA(x, 0, color.NRGBA{A: 255}) // and every other row black
	}
	var b bytes.Buffer
	storetest.Must(t, png.Encode(&b, glass))
	p, err := d.Preview(t.Context(), "f", b.Bytes())
	storetest.Must(t, err)
	m, err := jpeg.Decode(bytes.NewReader(p.Bytes))
	storetest.Must(t, err)
	if r, _, _, _ := m.At(3, 0).RGBA(); m.Bounds().Dx() != 650 || m.Bounds().Dy() != 1 || r>>8 < 120 || r>>8 > 135 {
		t.Errorf("%v, %d is not half of white", m.Bounds(), r>>8)
	}
	_, err = d.Preview(t.Context(), "f", []byte("%PDF-1.7"))
	storetest.Wants(t, err, fault.InvalidField)
}
