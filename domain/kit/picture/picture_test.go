package picture_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"maps"
	"math/rand/v2"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"castellan/domain/kit/fault"
	"castellan/domain/kit/picture"
	"castellan/domain/kit/picture/picturetest"
	"castellan/domain/kit/storetest"
)

func clean(t *testing.T, data []byte) picture.Picture {
	t.Helper()
	p := storetest.Value(picture.NewDecoder().Clean(t.Context(), "f", data))(t)
	return p
}

func TestClean(t *testing.T) {
	for name, c := range map[string]struct {
		data []byte
		is   picture.Format
		made picture.Format
	}{
		"png":  {picturetest.PNG(64, 48), picture.PNG, picture.PNG},
		"jpeg": {picturetest.JPEG(64, 48), picture.JPEG, picture.JPEG},
		"gif":  {picturetest.GIF(64, 48), picture.GIF, picture.PNG},
		"webp": {picturetest.WebP(64, 48), picture.WebP, picture.PNG},
		// As cameras write them: a second picture after the first.
		"two jpegs": {append(picturetest.JPEG(64, 48), picturetest.JPEG(8, 8)...), picture.JPEG, picture.JPEG},
	} {
		p := clean(t, c.data)
		m, made, err := image.Decode(bytes.NewReader(p.Bytes))
		if err != nil || p.Format != c.made || "image/"+made != string(c.made) || p.Width != 64 || p.Height != 48 ||
			m.Bounds().Dx() != 64 || m.Bounds().Dy() != 48 {
			t.Errorf("%s: %s %s %d×%d, %v", name, p.Format, made, p.Width, p.Height, err)
		}
		storetest.Equal(t, storetest.Value(picture.NewDecoder().Check(t.Context(), "f", c.data))(t), c.is, name)
	}
}

// The metadata of a picture are removed, and it is upright.
func TestOrientationAndMetadata(t *testing.T) {
	const w, h = 48, 32
	plain := picturetest.JPEG(w, h)
	at := func(p picture.Picture, x, y int) color.Color {
		m := storetest.Value(jpeg.Decode(bytes.NewReader(p.Bytes)))(t)
		return m.At(x, y)
	}
	near := func(a, b color.Color) bool {
		r1, g1, _, _ := a.RGBA()
		r2, g2, _, _ := b.RGBA()
		return max(r1, r2)-min(r1, r2) < 0x1800 && max(g1, g2)-min(g1, g2) < 0x1800
	}
	upright := clean(t, plain)
	for orientation, corner := range map[byte]image.Point{ // position of the first pixel of the file
		0: {0, 0}, 1: {0, 0}, 2: {w - 1, 0}, 3: {w - 1, h - 1}, 4: {0, h - 1},
		5: {0, 0}, 6: {h - 1, 0}, 7: {h - 1, w - 1}, 8: {0, w - 1}, 9: {0, 0},
	} {
		p := clean(t, picturetest.WithEXIF(plain, orientation))
		turned := orientation >= 5 && orientation <= 8
		storetest.Equal(t, (p.Width == h), turned, orientation, p.Width, p.Height)
		storetest.Equal(t, (p.Height == w), turned, orientation, p.Width, p.Height)
		if !near(at(p, corner.X, corner.Y), at(upright, 0, 0)) {
			t.Errorf("%d: the first pixel is not at %v: %v", orientation, corner, at(p, corner.X, corner.Y))
		}
		// The second corner of the first row distinguishes mirrored from turned pictures.
		last := map[byte]image.Point{0: {w - 1, 0}, 1: {w - 1, 0}, 2: {0, 0}, 3: {0, h - 1}, 4: {w - 1, h - 1},
			5: {0, w - 1}, 6: {h - 1, w - 1}, 7: {h - 1, 0}, 8: {0, 0}, 9: {w - 1, 0}}[orientation]
		if !near(at(p, last.X, last.Y), at(upright, w-1, 0)) {
			t.Errorf("%d: the end of the first row is not at %v: %v", orientation, last, at(p, last.X, last.Y))
		}
		if bytes.Contains(p.Bytes, []byte("Exif")) || bytes.Contains(p.Bytes, []byte("GPS")) {
			t.Errorf("%d: metadata is left", orientation)
		}
	}
}

// Every hostile file is rejected with its field, even if 32 arrive at once, within the memory of one picture.
func TestHostile(t *testing.T) {
	files := picturetest.Hostile()
	if len(files) < 40 {
		t.Fatalf("%d files", len(files))
	}
	d := picture.NewDecoder()
	peak := measure(t, func() {
		var wg sync.WaitGroup
		for range 32 {
			wg.Go(func() {
				for _, name := range slices.Sorted(maps.Keys(files)) {
					if f, err := checked(t, d, "imageData", files[name]); f != "" ||
						fault.CodeOf(err) != fault.InvalidField || err.(*fault.Error).Field != "imageData" {
						t.Errorf("%s: %s, %v", name, f, err)
					}
				}
			})
		}
		wg.Wait()
	})
	if peak > 100<<20 {
		t.Errorf("%d MiB at most", peak>>20)
	}
	t.Logf("%d files, %d KiB at most", len(files), peak>>10)
}

// checked checks a picture and retries while other calls hold the memory: the duration depends on the machine.
func checked(t *testing.T, d *picture.Decoder, field string, content []byte) (picture.Format, error) {
	for {
		if f, err := d.Check(t.Context(), field, content); fault.CodeOf(err) != fault.Overloaded {
			return f, err
		}
	}
}

// Large pictures share the memory of one.
func TestMemory(t *testing.T) {
	large := picturetest.PNG(4096, 3000) // 47 MiB of pixels
	d := picture.NewDecoder()
	peak := measure(t, func() {
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				storetest.Is(t, storetest.Err(checked(t, d, "f", large)), nil)
			})
		}
		wg.Wait()
	})
	if peak > 120<<20 {
		t.Errorf("%d MiB at most", peak>>20)
	}
}

// measure returns the maximum growth of the heap in bytes while do ran.
func measure(t *testing.T, do func()) uint64 {
	t.Helper()
	heap := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	runtime.GC()
	before := heap()
	var peak atomic.Uint64
	done, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			peak.Store(max(peak.Load(), heap()))
			select {
			case <-done:
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	do()
	close(done)
	<-stopped
	return peak.Load() - min(before, peak.Load())
}

// A caller that waits too long for memory is asked to retry, and nothing is decoded after the caller has disconnected.
func TestWaitForMemoryEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := picture.NewDecoder().Clean(ctx, "f", picturetest.PNG(8, 8))
	storetest.Wants(t, err, fault.Overloaded)
}

// 10 000 mutated pictures are decoded or rejected; nothing else happens.
func TestMutated(t *testing.T) {
	const rounds = 2000
	random := rand.New(rand.NewPCG(1, 2))
	d := picture.NewDecoder()
	for _, good := range seeds() {
		for range rounds {
			data := slices.Clone(good)
			for range 1 + random.IntN(8) {
				switch at := random.IntN(len(data)); random.IntN(4) {
				case 0:
					data[at] ^= 1 << random.IntN(8)
				case 1:
					data[at] = byte(random.IntN(256))
				case 2:
					data = append(data[:at:at], data[min(len(data), at+random.IntN(16)):]...)
				case 3:
					data = slices.Insert(data, at, data[random.IntN(len(data))])
				}
				if len(data) == 0 {
					break
				}
			}
			judge(t, d, data)
		}
	}
}

func judge(t *testing.T, d *picture.Decoder, data []byte) {
	p, err := d.Clean(t.Context(), "f", data)
	if err != nil {
		storetest.Wants(t, err, fault.InvalidField)
		return
	}
	var made image.Config
	if p.Format == picture.PNG {
		made, err = png.DecodeConfig(bytes.NewReader(p.Bytes))
	} else {
		made, err = jpeg.DecodeConfig(bytes.NewReader(p.Bytes))
	}
	if err != nil || made.Width != p.Width || made.Height != p.Height {
		t.Errorf("made %s %d×%d of %x: %v", p.Format, made.Width, made.Height, data, err)
	}
}

func seeds() [][]byte {
	return [][]byte{picturetest.PNG(24, 16), picturetest.JPEG(24, 16), picturetest.GIF(24, 16),
		picturetest.WebP(24, 16), picturetest.WithEXIF(picturetest.JPEG(24, 16), 6)}
}

func FuzzClean(f *testing.F) {
	for _, s := range seeds() {
		f.Add(s)
	}
	d := picture.NewDecoder()
	f.Fuzz(func(t *testing.T, data []byte) { judge(t, d, data) })
}

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
		storetest.Value(d.Preview(t.Context(), "f", data))(t)
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
		p := storetest.Value(d.Preview(t.Context(), "f", c.data))(t)
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
	p := storetest.Value(d.Preview(t.Context(), "f", b.Bytes()))(t)
	m := storetest.Value(jpeg.Decode(bytes.NewReader(p.Bytes)))(t)
	if r, _, _, _ := m.At(3, 0).RGBA(); m.Bounds().Dx() != 650 || m.Bounds().Dy() != 1 || r>>8 < 120 || r>>8 > 135 {
		t.Errorf("%v, %d is not half of white", m.Bounds(), r>>8)
	}
	storetest.Wants(t, storetest.Err(d.Preview(t.Context(), "f", []byte("%PDF-1.7"))), fault.InvalidField)
}
