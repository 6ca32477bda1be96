// Package picturetest makes pictures for tests: valid and hostile ones.
package picturetest

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"hash/crc32"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"slices"
)

// Drawn returns a picture with four different corners.
func Drawn(width, height int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for y := range height {
		for x := range width {
			m.Set(x, y, color.NRGBA{uint8(x * 255 / width), uint8(y * 255 / height), uint8(x ^ y), 255})
		}
	}
	return m
}

// PNG returns a drawn picture as PNG.
func PNG(width, height int) []byte {
	var b bytes.Buffer
	must(png.Encode(&b, Drawn(width, height)))
	return b.Bytes()
}

// JPEG returns a drawn picture as JPEG.
func JPEG(width, height int) []byte {
	var b bytes.Buffer
	must(jpeg.Encode(&b, Drawn(width, height), nil))
	return b.Bytes()
}

// GIF returns a drawn picture as GIF of two frames.
func GIF(width, height int) []byte {
	p := image.NewPaletted(image.Rect(0, 0, width, height), color.Palette{color.Black, color.White})
	for i := range p.Pix {
		p.Pix[i] = uint8(i % 2)
	}
	var b bytes.Buffer
	must(gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{p, p}, Delay: []int{1, 1}}))
	return b.Bytes()
}

// WebP returns a lossless picture of one colour, which has 28 bytes at any size.
func WebP(width, height int) []byte {
	bits := uint32(width-1) | uint32(height-1)<<14
	body := binary.LittleEndian.AppendUint32([]byte{0x2f}, bits)
	// No transform, no colour cache, one group of five simple codes of one symbol each.
	body = append(body, 0x88, 0x88, 0x08)
	return riff("VP8L", body)
}

// WithEXIF returns a JPEG with an orientation and a location.
func WithEXIF(picture []byte, orientation byte) []byte {
	exif := append([]byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00"),
		orientation, 0, 0, 0, 0, 0, 0)
	return segment(picture, 0xe1, append(exif, "GPS 41.0082 N 28.9784 E"...))
}

// segment inserts a segment after the start of a JPEG.
func segment(picture []byte, marker byte, body []byte) []byte {
	head := binary.BigEndian.AppendUint16([]byte{0xff, marker}, uint16(len(body)+2))
	return slices.Concat(picture[:2], head, body, picture[2:])
}

func riff(chunk string, body []byte) []byte {
	if len(body)%2 != 0 {
		body = append(body, 0)
	}
	out := binary.LittleEndian.AppendUint32([]byte("RIFF"), uint32(len(body)+12))
	out = binary.LittleEndian.AppendUint32(append(out, "WEBP"+chunk...), uint32(len(body)))
	return append(out, body...)
}

// pngOf returns a PNG whose header declares any size, with any data.
func pngOf(width, height uint32, depth, colour, interlace byte, data []byte) []byte {
	head := binary.BigEndian.AppendUint32(nil, width)
	head = append(binary.BigEndian.AppendUint32(head, height), depth, colour, 0, 0, interlace)
	return slices.Concat([]byte("\x89PNG\r\n\x1a\n"), chunk("IHDR", head), chunk("IDAT", data), chunk("IEND", nil))
}

func chunk(name string, body []byte) []byte {
	out := binary.BigEndian.AppendUint32(nil, uint32(len(body)))
	named := append([]byte(name), body...)
	return binary.BigEndian.AppendUint32(append(out, named...), crc32.ChecksumIEEE(named))
}

// zeros returns n zero bytes compressed as in a PNG.
func zeros(n int) []byte {
	var b bytes.Buffer
	z := zlib.NewWriter(&b)
	part := make([]byte, 1<<16)
	for ; n > 0; n -= len(part) {
		_, err := z.Write(part[:min(n, len(part))])
		must(err)
	}
	must(z.Close())
	return b.Bytes()
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}
