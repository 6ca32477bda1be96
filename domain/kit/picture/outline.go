package picture

import (
	"bytes"
	"encoding/binary"
	"iter"
)

// outline is what a file declares about itself without being decoded.
//
// Bytes after the end of a picture are ignored: cameras and galleries write trailers, further pictures and films there.
// Another reader could take them for an archive or a page. So a file with its original bytes is evidence, which is only
// sent as an attachment, and a picture for display is made of the pixels alone (Decoder.Clean).
type outline struct {
	orientation int   // of EXIF; 0: not stated
	interlaced  bool  // PNG
	perPixel    int64 // JPEG: bytes of memory
	unended     bool  // JPEG: the file ends with the last scan, without the marker of the end
	lossless    bool  // WebP
}

// outlineOf returns the outline of a picture and the position of its end.
func outlineOf(f Format, data []byte) (o outline, end int, err error) {
	switch f {
	case PNG:
		return outlinePNG(data)
	case JPEG:
		return outlineJPEG(data)
	case GIF:
		end, err = outlineGIF(data)
		return o, end, err
	}
	return outlineWebP(data)
}

// outlinePNG walks the chunks (PNG, section 5.3) to IEND.
func outlinePNG(data []byte) (o outline, end int, err error) {
	const head = 8 // signature; also length and type of a chunk
	for rest := data[head:]; len(rest) >= head; {
		size := uint64(binary.BigEndian.Uint32(rest)) + head + 4 // and the checksum
		if size > uint64(len(rest)) {
			break
		}
		switch string(rest[4:8]) {
		case "IHDR":
			o.interlaced = size == 25 && rest[20] != 0
		case "IEND":
			return o, len(data) - len(rest) + int(size), nil
		}
		rest = rest[size:]
	}
	return o, 0, errDamaged
}

// outlineWebP compares the size of the RIFF container with the file, and finds out how its pixels are compressed. The
// header of an extended file does not say it.
func outlineWebP(data []byte) (o outline, end int, err error) {
	size := uint64(binary.LittleEndian.Uint32(data[4:])) + 8
	if size > uint64(len(data)) {
		return o, 0, errDamaged
	}
	for name := range chunksOf(data[:size]) {
		o.lossless = o.lossless || name == "VP8L"
	}
	return o, int(size), nil
}

// chunksOf walks the chunks of a WebP (WebP Container Specification) that are complete.
func chunksOf(data []byte) iter.Seq2[string, []byte] {
	const riffHead, chunkHead = 12, 8
	return func(yield func(string, []byte) bool) {
		for rest := data[min(riffHead, len(data)):]; len(rest) >= chunkHead; {
			size := uint64(binary.LittleEndian.Uint32(rest[4:]))
			if size > uint64(len(rest)-chunkHead) || !yield(string(rest[:4]), rest[chunkHead:chunkHead+size]) {
				return
			}
			rest = rest[min(uint64(len(rest)), chunkHead+size+size%2):]
		}
	}
}

// firstFrame returns the first frame of an animated WebP as a picture, which the decoder reads, and any other file
// unchanged. A frame is a chunk of 16 bytes followed by the chunks of its picture.
func firstFrame(data []byte) []byte {
	const frameHead = 16
	for name, body := range chunksOf(data) {
		switch {
		case name == "VP8 ", name == "VP8L":
			return data
		case name == "ANMF" && len(body) > frameHead+4:
			out := []byte("RIFF\x00\x00\x00\x00WEBP")
			if string(body[frameHead:frameHead+4]) == "ALPH" { // width and height, less one, of three bytes each
				out = append(append(out, "VP8X\x0a\x00\x00\x00\x10\x00\x00\x00"...), body[6:12]...)
			}
			out = append(out, body[frameHead:]...)
			binary.LittleEndian.PutUint32(out[4:], uint32(len(out)-8))
			return out
		}
	}
	return data
}

// outlineGIF walks the blocks (GIF89a, section 15) to the trailer.
func outlineGIF(data []byte) (end int, err error) {
	at := 13 // header and screen
	table := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	if len(data) < at {
		return 0, errDamaged
	}
	at += table(data[10])
	for at < len(data) {
		switch data[at] {
		case 0x21: // extension
			at += 2
		case 0x2c: // image
			if at+10 > len(data) {
				return 0, errDamaged
			}
			at += 11 + table(data[at+9])
		case 0x3b:
			return at + 1, nil
		default:
			return 0, errDamaged
		}
		for at < len(data) && data[at] != 0 { // blocks of data
			at += int(data[at]) + 1
		}
		at++
	}
	return 0, errDamaged
}

// outlineJPEG walks the segments (ITU T.81, annex B) to EOI, as tolerantly as the decoder: bytes between two segments
// are skipped. Some programs leave EOI out; a picture whose scans are complete is read without it.
func outlineJPEG(data []byte) (o outline, end int, err error) {
	const (
		eoi, sos, app1, app14 = 0xd9, 0xda, 0xe1, 0xee
		sof0, sof2            = 0xc0, 0xc2 // the frames supported by the decoder begin between them
	)
	rgb, scanned := false, false
	for at := 2; at+1 < len(data); {
		marker := data[at+1]
		switch {
		case data[at] != 0xff || marker == 0xff || marker == 0: // extraneous, or fill
			at++
			continue
		case marker >= 0xd0 && marker <= 0xd7: // a restart after the last scan
			at += 2
			continue
		case marker == eoi && o.perPixel == 0, marker < 0xc0, marker == 0xd8:
			return o, 0, errDamaged
		case marker == eoi:
			return o.inColour(rgb), at + 2, nil
		}
		if at+4 > len(data) {
			break
		}
		size := int(binary.BigEndian.Uint16(data[at+2:]))
		if size < 2 || at+2+size > len(data) {
			return o, 0, errDamaged
		}
		body := data[at+4 : at+2+size]
		at += 2 + size
		switch {
		case marker >= sof0 && marker <= sof2:
			if len(body) < 6 || o.perPixel != 0 {
				return o, 0, errDamaged
			}
			o.perPixel = memoryJPEG(body, marker == sof2)
			rgb = rgb || len(body) == 15 && body[6] == 'R' && body[9] == 'G' && body[12] == 'B'
		case marker == app1 && o.orientation == 0:
			o.orientation = orientationOf(body)
		case marker == app14:
			rgb = rgb || len(body) >= 12 && string(body[:5]) == "Adobe" && body[11] == 0
		case marker == sos:
			at, scanned = endOfScan(data, at), true
		}
	}
	if !scanned || o.perPixel == 0 {
		return o, 0, errDamaged
	}
	o.unended = true
	return o.inColour(rgb), len(data), nil
}

// inColour returns the outline of a JPEG whose components may be red, green and blue.
func (o outline) inColour(rgb bool) outline {
	if rgb {
		o.perPixel += 4 // a copy in another form
	}
	return o
}

// endOfScan finds the marker after entropy-coded data, in which 0xff is followed by 0 or a restart marker.
func endOfScan(data []byte, at int) int {
	for at < len(data) {
		i := bytes.IndexByte(data[at:], 0xff)
		if i < 0 || at+i+1 >= len(data) {
			return len(data)
		}
		at += i
		if next := data[at+1]; next != 0 && (next < 0xd0 || next > 0xd7) {
			return at
		}
		at += 2
	}
	return at
}

// memoryJPEG returns the bytes of memory per pixel: a byte for each sample, and in progressive mode four more for its
// coefficient.
func memoryJPEG(frame []byte, progressive bool) int64 {
	once, twice := int64(8), int64(24) // four colours, and a copy
	switch components := frame[5]; {
	case components == 1:
		once, twice = 1, 5
	case components == 3 && len(frame) == 15 && frame[7] == 0x22 && frame[10] == 0x11 && frame[13] == 0x11:
		once, twice = 2, 8 // 4:2:0, 1.5 samples
	case components == 3:
		once, twice = 3, 15
	}
	if progressive {
		return twice
	}
	return once
}

// orientationOf reads tag 0x0112 of the first directory of EXIF data (JEITA CP-3451, section 4.6); 0: not stated.
func orientationOf(segment []byte) int {
	const entry = 12
	tiff, is := bytes.CutPrefix(segment, []byte("Exif\x00\x00"))
	if !is || len(tiff) < 8 {
		return 0
	}
	var order binary.ByteOrder = binary.LittleEndian
	if string(tiff[:2]) == "MM" {
		order = binary.BigEndian
	}
	at := uint64(order.Uint32(tiff[4:]))
	if at+2 > uint64(len(tiff)) {
		return 0
	}
	count := int(order.Uint16(tiff[at:]))
	for list := tiff[at+2:]; count > 0 && len(list) >= entry; count-- {
		if order.Uint16(list) == 0x0112 {
			return int(order.Uint16(list[8:]))
		}
		list = list[entry:]
	}
	return 0
}
