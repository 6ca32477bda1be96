package picture

import (
	"bytes"
	"encoding/binary"
)

// outline is what a file declares about itself without being decoded. It is read to ensure that no data follow the end
// of a picture, which another reader could take for an archive or a page.
type outline struct {
	orientation int   // of EXIF; 0: not stated
	interlaced  bool  // PNG
	perPixel    int64 // JPEG: bytes of memory
}

func outlineOf(f Format, data []byte) (outline, error) {
	switch f {
	case PNG:
		return outlinePNG(data)
	case JPEG:
		return outlineJPEG(data)
	case GIF:
		return outline{}, outlineGIF(data)
	}
	return outline{}, outlineWebP(data)
}

// outlinePNG walks the chunks (PNG, section 5.3) to IEND.
func outlinePNG(data []byte) (o outline, err error) {
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
			if size != uint64(len(rest)) {
				return o, errTrailing
			}
			return o, nil
		}
		rest = rest[size:]
	}
	return o, errDamaged
}

// outlineWebP compares the size of the RIFF container with the file.
func outlineWebP(data []byte) error {
	size := uint64(binary.LittleEndian.Uint32(data[4:])) + 8
	switch {
	case size > uint64(len(data)):
		return errDamaged
	case size+size%2 < uint64(len(data)):
		return errTrailing
	}
	return nil
}

// outlineGIF walks the blocks (GIF89a, section 15) to the trailer.
func outlineGIF(data []byte) error {
	at := 13 // header and screen
	table := func(flags byte) int {
		if flags&0x80 == 0 {
			return 0
		}
		return 3 << (flags&7 + 1)
	}
	if len(data) < at {
		return errDamaged
	}
	at += table(data[10])
	for at < len(data) {
		switch data[at] {
		case 0x21: // extension
			at += 2
		case 0x2c: // image
			if at+10 > len(data) {
				return errDamaged
			}
			at += 11 + table(data[at+9])
		case 0x3b:
			if at+1 != len(data) {
				return errTrailing
			}
			return nil
		default:
			return errDamaged
		}
		for at < len(data) && data[at] != 0 { // blocks of data
			at += int(data[at]) + 1
		}
		at++
	}
	return errDamaged
}

// outlineJPEG walks the segments (ITU T.81, annex B) to EOI. Only further pictures may follow, as cameras write them
// (CIPA DC-007); the first picture is decoded.
func outlineJPEG(data []byte) (outline, error) {
	o, size, err := segments(data)
	for rest := data; err == nil; _, size, err = segments(rest) {
		if rest = rest[size:]; len(rest) == 0 {
			return o, nil
		}
		if Sniff(rest) != JPEG {
			return o, errTrailing
		}
	}
	return o, err
}

// segments reads one picture and returns its size in bytes.
func segments(data []byte) (o outline, size int, err error) {
	const (
		eoi, sos, app1, app14 = 0xd9, 0xda, 0xe1, 0xee
		sof0, sof2            = 0xc0, 0xc2 // the frames supported by the decoder begin between them
	)
	rgb := false
	for at := 2; at+1 < len(data); {
		marker := data[at+1]
		switch {
		case data[at] != 0xff:
			return o, 0, errDamaged
		case marker == 0xff: // fill
			at++
			continue
		case marker == eoi && o.perPixel == 0, marker < 0xc0, marker >= 0xd0 && marker <= 0xd8:
			return o, 0, errDamaged
		case marker == eoi:
			if rgb {
				o.perPixel += 4 // a copy in another form
			}
			return o, at + 2, nil
		}
		if at+4 > len(data) {
			break
		}
		size := int(binary.BigEndian.Uint16(data[at+2:]))
		if size < 2 || at+2+size > len(data) {
			break
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
			at = endOfScan(data, at)
		}
	}
	return o, 0, errDamaged
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
