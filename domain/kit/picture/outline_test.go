package picture

import (
	"encoding/hex"
	"errors"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

// raw returns the bytes of hexadecimal text with spaces.
func raw(text string) []byte {
	b, err := hex.DecodeString(strings.ReplaceAll(text, " ", ""))
	if err != nil {
		panic(err)
	}
	return b
}

const (
	grey = " ffc0 000b 08 0001 0001 01 011100"               // a frame of one component: one byte of memory
	rgb  = " ffc0 0011 08 0001 0001 03 521100 471100 421100" // components named R, G and B: 3 + 4 bytes
)

// The outline of a JPEG is read segment by segment, as ITU T.81 defines them.
func TestOutlineJPEG(t *testing.T) {
	const adobe = " 41646f6265 0000 0000 0000 "
	ok := func(perPixel int64, orientation int) outline {
		return outline{perPixel: perPixel, orientation: orientation}
	}
	exif := func(orientation string) string {
		return " ffe1 0022 457869660000 4949 2a00 08000000 0100 1201 0300 01000000 " + orientation + " 00000000"
	}
	for name, c := range map[string]struct {
		data string
		want outline
		err  error
	}{
		"one frame":               {"ffd8" + grey + "ffd9", ok(1, 0), nil},
		"extended":                {"ffd8 ffc1" + grey[5:] + "ffd9", ok(1, 0), nil},
		"progressive":             {"ffd8 ffc2" + grey[5:] + "ffd9", ok(5, 0), nil},
		"lossless is no frame":    {"ffd8 ffc3" + grey[5:] + "ffd9", ok(0, 0), errDamaged},
		"fill bytes":              {"ffd8 ffffff" + grey[3:] + "ffd9", ok(1, 0), nil},
		"names of RGB":            {"ffd8" + rgb + "ffd9", ok(7, 0), nil},
		"not R":                   {"ffd8" + strings.Replace(rgb, "5211", "0111", 1) + "ffd9", ok(3, 0), nil},
		"not G":                   {"ffd8" + strings.Replace(rgb, "4711", "0211", 1) + "ffd9", ok(3, 0), nil},
		"not B":                   {"ffd8" + strings.Replace(rgb, "4211", "0311", 1) + "ffd9", ok(3, 0), nil},
		"RGB of Adobe":            {"ffd8" + grey + "ffee 000e" + adobe + "00 ffd9", ok(5, 0), nil},
		"YCbCr of Adobe":          {"ffd8" + grey + "ffee 000e" + adobe + "01 ffd9", ok(1, 0), nil},
		"Adobe before the frame":  {"ffd8 ffee 000e" + adobe + "00" + grey + "ffd9", ok(5, 0), nil},
		"RGB, then Adobe's YCbCr": {"ffd8" + rgb + "ffee 000e" + adobe + "01 ffd9", ok(7, 0), nil},
		"short Adobe":             {"ffd8" + grey + "ffee 000d" + adobe + "ffd9", ok(1, 0), nil},
		"orientation":             {"ffd8" + exif("0600 0000") + grey + "ffd9", ok(1, 6), nil},
		"the first orientation":   {"ffd8" + exif("0600 0000") + exif("0300 0000") + grey + "ffd9", ok(1, 6), nil},
		"a later orientation":     {"ffd8 ffe1 0004 4578" + exif("0300 0000") + grey + "ffd9", ok(1, 3), nil},
		"scan":                    {"ffd8" + grey + "ffda 0003 00 12 ff00 ffd0 ffd7 34 ffd9", ok(1, 0), nil},
		"scan without an end":     {"ffd8" + grey + "ffda 0003 00 12 ff", outline{perPixel: 1, unended: true}, nil},
		"marker without its size": {"ffd8" + grey + "ffda 0003 00 12 ffe0 00", outline{perPixel: 1, unended: true}, nil},
		"a second picture":        {"ffd8" + grey + "ffd9 ffd8" + rgb + "ffd9", ok(1, 0), nil},
		"a damaged second":        {"ffd8" + grey + "ffd9 ffd8" + rgb, ok(1, 0), nil},
		"bytes after the end":     {"ffd8" + grey + "ffd9 00", ok(1, 0), nil},
		"no frame":                {"ffd8 ffd9", ok(0, 0), errDamaged},
		"two frames":              {"ffd8" + grey + grey + "ffd9", ok(1, 0), errDamaged},
		"short frame":             {"ffd8 ffc0 0007 08 0001 0001 ffd9", ok(0, 0), errDamaged},
		"shortest frame":          {"ffd8 ffc0 0008 08 0001 0001 01 ffd9", ok(1, 0), nil},
		"no marker":               {"ffd8 00d9", ok(0, 0), errDamaged},
		"no marker after a frame": {"ffd8" + grey + "fed9", ok(1, 0), errDamaged},
		"reserved marker":         {"ffd8" + grey + "ffbf 0002 ffd9", ok(1, 0), errDamaged},
		"restart outside a scan":  {"ffd8" + grey + "ffd0 ffd7 ffd9", ok(1, 0), nil},
		"bytes between segments":  {"ffd8" + grey + "0001 ff00 fe ffd9", ok(1, 0), nil},
		"a second beginning":      {"ffd8" + grey + "ffd8 0002 ffd9", ok(1, 0), errDamaged},
		"empty segment":           {"ffd8 ffcf 0002" + grey + "ffd9", ok(1, 0), nil},
		"size of one":             {"ffd8" + grey + "ffe0 0001 ffd9", ok(1, 0), errDamaged},
		"size beyond the file":    {"ffd8" + grey + "ffe0 0005 ffd9", ok(1, 0), errDamaged},
		"no size":                 {"ffd8" + grey + "ffe0 00", ok(1, 0), errDamaged},
		"only a beginning":        {"ffd8", ok(0, 0), errDamaged},
		"half a marker":           {"ffd8 ff", ok(0, 0), errDamaged},
	} {
		data := raw(c.data)
		got, end, err := outlineJPEG(data)
		ends := map[string]int{"a second picture": 17, "a damaged second": 17, "bytes after the end": 17}[name]
		if ends == 0 && err == nil {
			ends = len(data)
		}
		if !errors.Is(err, c.err) || got != c.want || end != ends {
			t.Errorf("%s: %+v to %d, %v", name, got, end, err)
		}
	}
}

// A JPEG takes a byte for each sample; in progressive mode its coefficients take four more for each.
func TestMemoryOfJPEG(t *testing.T) {
	for name, c := range map[string]struct {
		frame       string
		once, twice int64
	}{
		"grey":               {"08 0001 0001 01 011100", 1, 5},
		"4:2:0":              {"08 0001 0001 03 012200 021100 031100", 2, 8},
		"4:2:2":              {"08 0001 0001 03 012100 021100 031100", 3, 15},
		"unusual second":     {"08 0001 0001 03 012200 022100 031100", 3, 15},
		"unusual third":      {"08 0001 0001 03 012200 021100 032100", 3, 15},
		"fields are missing": {"08 0001 0001 03 012200 0211", 3, 15},
		"two components":     {"08 0001 0001 02 012200 021100 031100", 8, 24},
		"four components":    {"08 0001 0001 04 012200 021100 031100 041100", 8, 24},
	} {
		if once, twice := memoryJPEG(raw(c.frame), false), memoryJPEG(raw(c.frame), true); once != c.once ||
			twice != c.twice {
			t.Errorf("%s: %d, %d", name, once, twice)
		}
	}
}

// The orientation is found in both byte orders and after other fields. Damaged directories state none.
func TestOrientationOfEXIF(t *testing.T) {
	const (
		little = "457869660000 4949 2a00 08000000 "
		big    = "457869660000 4d4d 002a 00000008 "
		other  = "0f01 0200 01000000 0700 0000 "
		entry  = "1201 0300 01000000 0600 0000 "
	)
	for name, c := range map[string]struct {
		segment string
		want    int
	}{
		"first":                   {little + "0100 " + entry, 6},
		"second":                  {little + "0200 " + other + entry, 6},
		"third, and one after it": {little + "0400 " + other + other + entry + other, 6},
		"big endian":              {big + "0001 0112 0003 00000001 0006 0000", 6},
		"beyond the count":        {little + "0100 " + other + entry, 0},
		"not counted":             {little + "0000 " + entry, 0},
		"cut off":                 {little + "0100 " + entry[:len(entry)-3], 0},
		"directory elsewhere":     {"457869660000 4949 2a00 0a000000 ffff 0100 " + entry, 6},
		"directory at the end":    {"457869660000 4949 2a00 08000000 0100", 0},
		"directory behind it":     {"457869660000 4949 2a00 09000000 0100", 0},
		"no directory":            {"457869660000 4949 2a00", 0},
		"not EXIF":                {"687474703a2f 4949 2a00 08000000 0100 " + entry, 0},
	} {
		storetest.Equal(t, orientationOf(raw(c.segment)), c.want, name)
	}
}

// The outline of a GIF is read block by block, as GIF89a defines them.
func TestOutlineGIF(t *testing.T) {
	const (
		head  = "474946383961 0100 0100 "
		image = "2c 0000 0000 0100 0100 "
		pixel = "02 02 4401 00 "
	)
	for name, c := range map[string]struct {
		data string
		err  error
	}{
		"one image":            {head + "00 0000" + image + "00" + pixel + "3b", nil},
		"two colours":          {head + "80 0000" + "3b3b3b 3b3b3b" + image + "00" + pixel + "3b", nil},
		"four colours":         {head + "81 0000" + "3b3b3b 3b3b3b 3b3b3b 3b3b3b" + image + "00" + pixel + "3b", nil},
		"flags without colour": {head + "77 0000" + image + "00" + pixel + "3b", nil},
		"local colours":        {head + "00 0000" + image + "80 3b3b3b 3b3b3b" + pixel + "3b", nil},
		"extension":            {head + "00 0000" + "21f9 04 3b3b3b3b 00" + image + "00" + pixel + "3b", nil},
		"blocks of data":       {head + "00 0000" + "21fe 01 3b 02 3b3b 00" + image + "00" + pixel + "3b", nil},
		"no image":             {head + "00 0000 3b", nil},
		"no end":               {head + "00 0000" + image + "00" + pixel, errDamaged},
		"bytes after the end":  {head + "00 0000" + image + "00" + pixel + "3b 00", nil},
		"unknown block":        {head + "00 0000" + image + "00" + pixel + "2d 3b", errDamaged},
		"half an image":        {head + "00 0000 2c 0000 0000 0100 0100", errDamaged},
		"only a signature":     {"474946383961", errDamaged},
		"half a head":          {head + "00 00", errDamaged},
		"block beyond the end": {head + "00 0000" + "21fe 09 3b 00", errDamaged},
	} {
		data := raw(c.data)
		want := len(data)
		switch {
		case c.err != nil:
			want = 0
		case name == "bytes after the end":
			want--
		}
		if end, err := outlineGIF(data); !errors.Is(err, c.err) || end != want {
			t.Errorf("%s: to %d, %v", name, end, err)
		}
	}
}

// A WebP ends where its container does. An extended one is lossless if a chunk says so.
func TestOutlineWebP(t *testing.T) {
	for name, c := range map[string]struct {
		data     string
		lossless bool
		end      int
		err      error
	}{
		"even":              {"52494646 04000000 57454250", false, 12, nil},
		"odd":               {"52494646 05000000 57454250 01", false, 13, nil},
		"odd and two bytes": {"52494646 05000000 57454250 010000", false, 13, nil},
		"even and one byte": {"52494646 04000000 57454250 00", false, 12, nil},
		"cut off":           {"52494646 05000000 57454250", false, 0, errDamaged},
		"lossless":          {"52494646 18000000 57454250 58585858 03000000 01020300 5650384c 00000000", true, 32, nil},
		"a long chunk":      {"52494646 0c000000 57454250 5650384c 01000000", false, 20, nil},
	} {
		if o, end, err := outlineWebP(raw(c.data)); !errors.Is(err, c.err) || end != c.end || o.lossless != c.lossless {
			t.Errorf("%s: %+v to %d, %v", name, o, end, err)
		}
	}
}

// The outline of a PNG ends with its last chunk.
func TestOutlinePNG(t *testing.T) {
	const (
		head = "89504e470d0a1a0a"
		ihdr = "0000000d 49484452 00000001 00000001 08 02 00 00 "
		crc  = "00000000"
		end  = "00000000 49454e44 00000000"
	)
	for name, c := range map[string]struct {
		data       string
		interlaced bool
		err        error
	}{
		"plain":               {head + ihdr + "00" + crc + end, false, nil},
		"interlaced":          {head + ihdr + "01" + crc + end, true, nil},
		"head of another":     {head + "0000000e" + ihdr[8:] + "01 00" + crc + end, false, nil},
		"another chunk":       {head + ihdr + "00" + crc + "00000003 74455874 010203" + crc + end, false, nil},
		"bytes after the end": {head + ihdr + "00" + crc + end + "00", false, nil},
		"no end":              {head + ihdr + "01" + crc, true, errDamaged},
		"half an end":         {head + ihdr + "00" + crc + end[:len(end)-2], false, errDamaged},
	} {
		data := raw(c.data)
		got, at, err := outlinePNG(data)
		want := len(data)
		switch {
		case c.err != nil:
			want = 0
		case name == "bytes after the end":
			want--
		}
		if !errors.Is(err, c.err) || got.interlaced != c.interlaced || at != want {
			t.Errorf("%s: %+v to %d, %v", name, got, at, err)
		}
	}
}
