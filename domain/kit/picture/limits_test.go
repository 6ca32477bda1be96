package picture

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/storetest"
)

// The memory of a picture depends on its format and its colours. One that needs too much is rejected.
func TestMemoryBounds(t *testing.T) {
	const limit = 96 << 20
	of := func(m color.Model, width, height int) image.Config {
		return image.Config{ColorModel: m, Width: width, Height: height}
	}
	rgba := color.RGBAModel
	for name, c := range map[string]struct {
		shape  outline
		format Format
		config image.Config
		size   int
		want   int64
		err    error
	}{
		"one pixel":                {outline{}, PNG, of(rgba, 1, 1), 1, 4, nil},
		"no width":                 {outline{}, PNG, of(rgba, 0, 1), 1, 0, errDamaged},
		"no height":                {outline{}, PNG, of(rgba, 1, 0), 1, 0, errDamaged},
		"widest":                   {outline{}, PNG, of(rgba, 8192, 1), 1, 4 * 8192, nil},
		"too wide":                 {outline{}, PNG, of(rgba, 8193, 1), 1 << 20, 0, errLarge},
		"highest":                  {outline{}, PNG, of(rgba, 1, 8192), 1, 4 * 8192, nil},
		"too high":                 {outline{}, PNG, of(rgba, 1, 8193), 1 << 20, 0, errLarge},
		"most pixels":              {outline{}, PNG, of(rgba, 8192, 3072), 1 << 20, limit, nil},
		"one row more":             {outline{perPixel: 1}, JPEG, of(color.GrayModel, 8192, 3073), 1 << 20, 0, errLarge},
		"of one colour":            {outline{}, GIF, of(rgba, 2048, 2048), 1, 8 << 20, nil},
		"as sparse as allowed":     {outline{}, GIF, of(rgba, 2049, 2048), 4196, 2 * 2049 * 2048, nil},
		"too sparse":               {outline{}, GIF, of(rgba, 2049, 2048), 4195, 0, errLarge},
		"interlaced":               {outline{interlaced: true}, PNG, of(rgba, 10, 10), 1, 600, nil},
		"16 bits":                  {outline{}, PNG, of(color.RGBA64Model, 10, 10), 1, 800, nil},
		"16 bits, transparent":     {outline{}, PNG, of(color.NRGBA64Model, 10, 10), 1, 800, nil},
		"16 bits, grey":            {outline{}, PNG, of(color.Gray16Model, 10, 10), 1, 800, nil},
		"most pixels of 16 bits":   {outline{}, PNG, of(color.RGBA64Model, 8192, 1536), 1 << 20, limit, nil},
		"too many of 16 bits":      {outline{}, PNG, of(color.RGBA64Model, 8192, 1537), 1 << 20, 0, errLarge},
		"JPEG":                     {outline{perPixel: 7}, JPEG, of(color.YCbCrModel, 10, 10), 1, 700, nil},
		"WebP":                     {outline{}, WebP, of(color.YCbCrModel, 10, 10), 1, 200, nil},
		"WebP, transparent":        {outline{}, WebP, of(color.NYCbCrAModel, 10, 10), 1, 1200, nil},
		"WebP, lossless":           {outline{}, WebP, of(color.NRGBAModel, 8192, 1536), 1 << 20, limit, nil},
		"WebP, lossless and large": {outline{}, WebP, of(color.NRGBAModel, 8192, 1537), 1 << 20, 0, errLarge},
	} {
		if got, err := c.shape.memory(c.format, c.config, c.size); got != c.want || !errors.Is(err, c.err) {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
}

// A file of 15 MiB is read, and one of a byte more is rejected for its size.
func TestLargestFile(t *testing.T) {
	for size, want := range map[int]string{
		15 << 20:   "INVALID_FIELD: f: must be a PNG, JPEG, WebP or GIF picture",
		15<<20 + 1: "INVALID_FIELD: f: is larger than 15 MiB",
	} {
		if _, err := NewDecoder().Check(t.Context(), "f", make([]byte, size)); err == nil || err.Error() != want {
			t.Errorf("%d: %v", size, err)
		}
	}
	out := &limited{ctx: t.Context()}
	storetest.Is(t, storetest.Err(out.Write(make([]byte, 15<<20))), nil)
	if _, err := out.Write([]byte{1}); !errors.Is(err, errLarge) || out.Len() != 15<<20 {
		t.Errorf("%d bytes, %v", out.Len(), err)
	}
}

// Reading and writing end with their context.
func TestDecodingEndsWithContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	in, out := &timed{ctx, bytes.NewReader([]byte{7, 8})}, &limited{ctx: ctx}
	storetest.Equal(t, storetest.Value(in.ReadByte())(t), 7)
	cancel()
	_, reads := in.Read(make([]byte, 1))
	_, readsByte := in.ReadByte()
	_, writes := out.Write([]byte{1})
	for _, err := range []error{reads, readsByte, writes} {
		storetest.Is(t, err, context.Canceled)
	}
	if in.Len() != 1 || out.Len() != 0 {
		t.Errorf("%d bytes are left, %d are written", in.Len(), out.Len())
	}
}

// A caller without memory is asked to retry after three seconds.
func TestOverloadedNamesItsWait(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := NewDecoder().Check(ctx, "f", raw("ffd8"+grey+"ffda 0003 00 12 ffd9"))
	var f *fault.Error
	if !errors.As(err, &f) || f.Code != fault.Overloaded || f.RetryAfter != 3*time.Second {
		t.Error(err)
	}
}

func TestExtensions(t *testing.T) {
	for name, want := range map[string]string{"logo.PNG": "png", ".gif": "gif", "a.b.jpeg": "jpeg", "a.ab": "ab",
		"a.abcde": "abcde", "a.az9": "az9", "a.za": "za", "a.a": "", "a.abcdef": "", "a.7z": "", "a.{z": "", "a.a-b": "",
		"png": "", "": "", "a.": ""} {
		storetest.Equal(t, Extension(name), want, name)
	}
	for f, want := range map[Format]string{PNG: ".png", JPEG: ".jpg", GIF: ".gif", WebP: ".webp", "text/plain": ""} {
		storetest.Equal(t, f.Ext(), want, f)
	}
}

// The format follows from the first bytes alone.
func TestSniff(t *testing.T) {
	for data, want := range map[string]Format{"\x89PNG\r\n\x1a\n": PNG, "\x89PNG\r\n\x1a": "", "\xff\xd8\xff": JPEG,
		"\xff\xd8": "", "GIF87a": GIF, "GIF89a": GIF, "GIF88a": "", "RIFF1234WEBP": WebP, "RIFF1234WEBP5": WebP,
		"RIFF1234WEB": "", "RIFX1234WEBP": "", "RIFF1234WAVE": ""} {
		storetest.Equal(t, Sniff([]byte(data)), want, data)
	}
}
