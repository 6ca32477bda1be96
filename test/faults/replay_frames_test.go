package faults

import (
	"encoding/binary"
	"testing"

	"castellan/internal/blackbox"
)

// Frames of the socket.
var replaysOfFrames = []replay{
	{"CVE-2020-27813", "gorilla/websocket: the length of a frame overflowed, and the connection waited for ever",
		func(t *testing.T, s stage) {
			a := s.user()
			f := s.begin(a)
			watched := s.Socket(t, f)
			for _, length := range []uint64{1<<63 - 1, 1 << 63, 1<<64 - 1, 64 << 20} {
				bad := s.Socket(t, f)
				bad.Send(binary.BigEndian.AppendUint64([]byte{0x81, 0xff}, length), []byte{1, 2, 3, 4, 'x'})
				bad.Closed(blackbox.Within(10))
			}
			s.answer(a, f, "SMS").Is(t, 200, "")
			watched.Expect(f, "LOGIN", "METHOD_COMPLETE")
			watched.Expect(f, "LOGIN", "ACTION_COMPLETE")
			s.alive()
		}, nil},
}
