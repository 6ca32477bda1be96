package sockload_test

import (
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"castellan/domain/kit/storetest"
	"castellan/internal/sockload"
)

// expect reads the next frame and checks its event, or the end of the socket.
func expect(t *testing.T, c net.Conn, want string) {
	t.Helper()
	c.SetReadDeadline(time.Now().Add(20 * time.Second))
	text, err := sockload.Next(c)
	got := ""
	if err != nil {
		got = err.Error()
	} else {
		var m struct{ Event string }
		storetest.Must(t, json.Unmarshal(text, &m))
		got = m.Event
	}
	if !strings.HasPrefix(got, want) {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The life of one challenge on sockets of the whole service. It has events as they happen, and again for a later
// socket. It has the sixth socket, a challenge that makes room for a newer one, and the end of the node.
func TestSocketsOfTheService(t *testing.T) {
	s := start(t, 2)
	dial := func(c started) net.Conn {
		t.Helper()
		conn := storetest.Value(sockload.Dial(s.addr, c.token))(t)
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	login := func(n int) started {
		t.Helper()
		return storetest.Value(s.login(n))(t)
	}
	c := login(0)
	live := dial(c)
	l := s.line()
	storetest.Must(t, errors.Join(l.complete("p-auth: "+c.token, s.mail(c)), l.answered()))
	expect(t, live, "METHOD_COMPLETE")
	expect(t, live, "ACTION_COMPLETE")
	for range 4 {
		late := dial(c)
		expect(t, late, "METHOD_COMPLETE")
		expect(t, late, "ACTION_COMPLETE")
	}
	expect(t, dial(c), "closed with 4429")

	oldest := login(1)
	watching := dial(oldest)
	for range 5 {
		login(1)
	}
	expect(t, watching, "closed with 4410")
	expect(t, dial(oldest), "closed with 4410")
	if _, err := sockload.Dial(s.addr, oldest.token[:len(oldest.token)-4]+"AAAA"); err == nil ||
		!strings.Contains(err.Error(), "401") {
		t.Errorf("a token that nobody signed: %v", err)
	}
	s.CloseInput()
	expect(t, live, "closed with 1012")
	if _, err := sockload.Next(live); err != io.EOF {
		t.Errorf("after its end: %v", err)
	}
}

func TestOpen(t *testing.T) {
	s := start(t, 2)
	tokens := s.challenges(0, 2, 3)
	stop := storetest.Value(sockload.Open(s.addr, tokens))(t)
	if err := stop(); err != nil {
		t.Error(err)
	}
	first, err := s.login(0)
	storetest.Must(t, err)
	stop, err = sockload.Open(s.addr, []string{first.token, first.token, tokens[5]})
	storetest.Must(t, err)
	own := storetest.Value(sockload.Dial(s.addr, first.token))(t)
	s.challenges(0, 1, 5) // the first is closed for them
	expect(t, own, "closed with 4410")
	time.Sleep(200 * time.Millisecond) // the other process receives it too, unseen
	if err := stop(); err == nil || !strings.Contains(err.Error(), "2 of 3 sockets had ended") {
		t.Errorf("sockets that were closed: %v", err)
	}
	if _, err := sockload.Open(s.addr, []string{"no token"}); err == nil || !strings.Contains(err.Error(), "401") {
		t.Errorf("a bad token: %v", err)
	}
}
