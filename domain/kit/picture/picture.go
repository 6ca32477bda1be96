// Package picture validates uploaded pictures and makes clean copies of them (D-GEN-12, D-ADM-06).
//
// The one idea: an uploaded picture costs nothing before its size is known, and uploaded bytes are never shown to other
// users. The order is fixed: magic bytes, the outline of the file (outline.go), width and height, the memory for
// decoding, a share of the process memory for pictures. Decoding comes last, under a time limit. Clean encodes the
// pixels again, so that no metadata, no location and no embedded file survives.
//
// A slice that shows pictures to other users stores the result of Clean:
//
//	p, err := pictures.Clean(ctx, "imageData", in.ImageData)         // INVALID_FIELD imageData, OVERLOADED
//	key := blob.NewKey("public/announcement", p.Format.Ext(), now)   // domain/kit/blob
//	err = files.Put(ctx, key, p.Bytes)
//
// A slice that stores the original bytes as evidence calls Check and never serves them inline. One Decoder serves the
// whole process; cmd/app makes it.
//
// TIFF, BMP and SVG are never read. Start reading at Decoder.
package picture

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"image"
	"image/color"
	"image/gif"
	"image/jpeg"
	"image/png"
	"io"
	"runtime"
	"strings"
	"time"

	"golang.org/x/image/webp"
	"golang.org/x/sync/semaphore"

	"castellan/domain/kit/fault"
)

// The limits of a picture.
const (
	MaxSidePixels = 8192
	MaxPixels     = 24 << 20
	// MaxBytes is the largest input and output file.
	MaxBytes = 15 << 20

	// memoryBytes is the memory of all pictures that are decoded at a time: one of MaxPixels with four bytes each.
	memoryBytes = 4 * MaxPixels
	// collectBytes is the smallest memory of a picture after which a garbage collection runs at once.
	collectBytes = memoryBytes / 4
	// A file far smaller than its picture is meant to waste memory. Pictures below sparsePixels may be of one colour.
	sparsePixels        = 4 << 20
	sparsePixelsPerByte = 1000

	waitForMemory = 3 * time.Second
	timeLimit     = 10 * time.Second
	jpegQuality   = 90 // of 100
)

// Format is a picture format, as a media type.
type Format string

// The supported formats.
const (
	PNG  Format = "image/png"
	JPEG Format = "image/jpeg"
	GIF  Format = "image/gif" // only its first frame
	WebP Format = "image/webp"
)

// Ext returns the file extension of the format, with its dot.
func (f Format) Ext() string {
	switch f {
	case PNG:
		return ".png"
	case JPEG:
		return ".jpg"
	case GIF:
		return ".gif"
	case WebP:
		return ".webp"
	}
	return ""
}

// Sniff detects the format from the first bytes of a file; "" for any other file.
func Sniff(data []byte) Format {
	switch {
	case bytes.HasPrefix(data, []byte("\x89PNG\r\n\x1a\n")):
		return PNG
	case bytes.HasPrefix(data, []byte("\xff\xd8\xff")):
		return JPEG
	case bytes.HasPrefix(data, []byte("GIF87a")), bytes.HasPrefix(data, []byte("GIF89a")):
		return GIF
	case len(data) >= 12 && string(data[:4]) == "RIFF" && string(data[8:12]) == "WEBP":
		return WebP
	}
	return ""
}

// Unsupported returns an error that says what to send in place of a picture of a known kind that is not read; nil for
// any other file. HEIC and AVIF are files of ISO 14496-12, which begin with a box of brands.
func Unsupported(data []byte) error {
	if len(data) < 12 || string(data[4:8]) != "ftyp" {
		return nil
	}
	switch string(data[8:12]) {
	case "heic", "heix", "heim", "heis", "hevc", "hevx", "hevm", "hevs", "mif1", "mif2", "msf1":
		return errHEIC
	case "avif", "avis":
		return errAVIF
	}
	return nil
}

// Picture is a clean picture.
type Picture struct {
	Bytes         []byte
	Format        Format // JPEG, or PNG if the source may be transparent or is a drawing
	Width, Height int
}

// Decoder decodes pictures within a fixed memory per process. It is safe for concurrent use.
type Decoder struct{ memory *semaphore.Weighted }

// NewDecoder returns a decoder with its own memory.
func NewDecoder() *Decoder { return &Decoder{semaphore.NewWeighted(memoryBytes)} }

// Check decodes a picture completely and returns its format. INVALID_FIELD names field. OVERLOADED if too many pictures
// are being decoded.
func (d *Decoder) Check(ctx context.Context, field string, data []byte) (Format, error) {
	return d.read(ctx, field, data, func(image.Image, Format) error { return nil })
}

// Clean decodes a picture, turns it upright and encodes it again: as JPEG if the source is a JPEG or a WebP without
// transparency, else as PNG. INVALID_FIELD names field. OVERLOADED as in Check.
func (d *Decoder) Clean(ctx context.Context, field string, data []byte) (Picture, error) {
	return d.encoded(ctx, field, data, func(m image.Image, f Format) (image.Image, Format) {
		if _, lossy := m.(*image.YCbCr); lossy {
			f = JPEG
		}
		return m, f
	}, jpegQuality)
}

// encoded decodes a picture and encodes what made returns: as JPEG if that is its format, else as PNG.
func (d *Decoder) encoded(ctx context.Context, field string, data []byte,
	made func(image.Image, Format) (image.Image, Format), quality int) (p Picture, err error) {
	_, err = d.read(ctx, field, data, func(m image.Image, f Format) (err error) {
		out := &limited{ctx: ctx}
		if m, f = made(m, f); f == JPEG {
			err = jpeg.Encode(out, m, &jpeg.Options{Quality: quality})
		} else {
			f, err = PNG, png.Encode(out, m)
		}
		p = Picture{out.Bytes(), f, m.Bounds().Dx(), m.Bounds().Dy()}
		return err
	})
	if err != nil {
		return Picture{}, err
	}
	return p, nil
}

// read decodes a picture and passes it to use while its share of the memory is held.
func (d *Decoder) read(ctx context.Context, field string, data []byte,
	use func(image.Image, Format) error) (Format, error) {
	format := Sniff(data)
	switch {
	case len(data) > MaxBytes:
		return "", fault.Invalid(field, "is larger than 15 MiB")
	case format == "":
		return "", fault.Invalid(field, "%v", cmp.Or(Unsupported(data), errKind))
	case format == WebP:
		data = firstFrame(data)
	}
	shape, end, err := outlineOf(format, data)
	if err != nil {
		return "", fault.Invalid(field, "%v", err)
	}
	data = data[:end:end]
	config, err := codecs[format].config(bytes.NewReader(data))
	if err != nil {
		return "", fault.Invalid(field, "%v", errDamaged)
	}
	memory, err := shape.memory(format, config, len(data))
	if err != nil {
		return "", fault.Invalid(field, "%v", err)
	}
	waiting, cancel := context.WithTimeout(ctx, waitForMemory)
	defer cancel()
	if d.memory.Acquire(waiting, memory) != nil {
		return "", fault.New(fault.Overloaded, "too many pictures are being read").After(waitForMemory)
	}
	defer d.memory.Release(memory)
	ctx, cancel = context.WithTimeout(ctx, timeLimit)
	defer cancel()
	if shape.unended {
		data = append(data, "\xff\xd9"...)
	}
	err = decode(ctx, format, data, func(m image.Image) error {
		if m.Bounds().Dx() > config.Width || m.Bounds().Dy() > config.Height {
			return errDamaged
		}
		return use(upright(m, shape.orientation), format)
	})
	if memory >= collectBytes {
		runtime.GC() // otherwise the next large picture would be allocated beside this garbage
	}
	switch {
	case err == nil:
		return format, nil
	case errors.Is(err, errLarge):
		return "", fault.Invalid(field, "%v", err)
	case ctx.Err() != nil:
		return "", fault.Invalid(field, "takes too long to read")
	}
	return "", fault.Invalid(field, "%v", errDamaged)
}

func decode(ctx context.Context, f Format, data []byte, use func(image.Image) error) error {
	m, err := codecs[f].decode(&timed{ctx, bytes.NewReader(data)})
	if err != nil {
		return err
	}
	return use(m)
}

var (
	errKind    = errors.New("must be a PNG, JPEG, WebP or GIF picture")
	errDamaged = errors.New("is damaged or incomplete")
	errLarge   = errors.New("has too many pixels")
	errHEIC    = errors.New("is a HEIC picture, which is not supported: send a JPEG, which an iPhone takes with " +
		"Settings, Camera, Formats, Most Compatible, and which other programs save or export")
	errAVIF = errors.New("is an AVIF picture, which is not supported: save or export it as JPEG")
)

// codec decodes the header of a picture, and the whole picture.
type codec struct {
	config func(io.Reader) (image.Config, error)
	decode func(io.Reader) (image.Image, error)
}

var codecs = map[Format]codec{
	PNG:  {png.DecodeConfig, png.Decode},
	JPEG: {jpeg.DecodeConfig, jpeg.Decode},
	GIF:  {gif.DecodeConfig, gif.Decode},
	WebP: {webp.DecodeConfig, webp.Decode},
}

// memory returns the maximum bytes for decoding, or why the picture is rejected.
func (o outline) memory(f Format, c image.Config, size int) (int64, error) {
	pixels := int64(c.Width) * int64(c.Height)
	switch {
	case c.Width < 1 || c.Height < 1:
		return 0, errDamaged
	case c.Width > MaxSidePixels || c.Height > MaxSidePixels || pixels > MaxPixels,
		pixels > sparsePixels && pixels/sparsePixelsPerByte > int64(size):
		return 0, errLarge
	}
	perPixel := int64(4)
	switch {
	case f == JPEG:
		perPixel = o.perPixel
	case f == GIF:
		perPixel = 2 // and its copy, row by row in another order
	case f == WebP && !o.lossless && c.ColorModel == color.YCbCrModel:
		perPixel = 2
	case f == WebP && !o.lossless && c.ColorModel == color.NYCbCrAModel:
		perPixel = 12 // transparency is decoded as a separate picture
	case f == WebP: // lossless: its tables do not depend on its pixels, so no other picture is decoded beside it
		if 8*pixels > memoryBytes {
			return 0, errLarge
		}
		return memoryBytes, nil
	case c.ColorModel == color.RGBA64Model || c.ColorModel == color.NRGBA64Model || c.ColorModel == color.Gray16Model:
		perPixel = 8
	}
	need := perPixel * pixels
	if o.interlaced {
		need += need / 2
	}
	if need > memoryBytes {
		return 0, errLarge
	}
	return need, nil
}

// timed stops a decoder when its context ends.
type timed struct {
	ctx context.Context
	*bytes.Reader
}

func (t *timed) Read(p []byte) (int, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	return t.Reader.Read(p)
}

func (t *timed) ReadByte() (byte, error) {
	if err := t.ctx.Err(); err != nil {
		return 0, err
	}
	return t.Reader.ReadByte()
}

// limited accepts at most MaxBytes, until its context ends.
type limited struct {
	ctx context.Context
	bytes.Buffer
}

func (l *limited) Write(p []byte) (int, error) {
	if err := l.ctx.Err(); err != nil {
		return 0, err
	}
	if l.Len()+len(p) > MaxBytes {
		return 0, errLarge
	}
	return l.Buffer.Write(p)
}

// Extension returns the extension of a file name in lower case, without its dot: "png" for logo.PNG. An extension has 2
// to 5 letters and digits and begins with a letter; without one the result is "".
func Extension(name string) string {
	dot := strings.LastIndexByte(name, '.')
	ext := strings.ToLower(name[dot+1:])
	if dot < 0 || len(ext) < 2 || len(ext) > 5 || ext[0] < 'a' || ext[0] > 'z' || strings.Trim(ext, letters) != "" {
		return ""
	}
	return ext
}

const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
