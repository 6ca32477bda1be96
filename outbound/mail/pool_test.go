package mail

import (
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/wneessen/go-mail/smtp"

	"castellan/domain/kit/storetest"
)

// An unused connection is closed after keepIdle; a connection that was used in the meantime stays.
func TestIdleConnectionEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, server := net.Pipe()
		ended := make(chan time.Time, 1)
		go func() {
			storetest.Is(t, storetest.Err(server.Write([]byte("220 ready\r\n"))), nil)
			buf := make([]byte, 256)
			for {
				if _, err := server.Read(buf); err != nil {
					ended <- time.Now()
					return
				}
				if _, err := server.Write([]byte("250 ok\r\n")); err != nil {
					return
				}
			}
		}()
		conversation := storetest.Value(smtp.NewClient(client, "relay.test"))(t)
		p := newPool(1, nil)
		c := &session{smtp: conversation, raw: client, timeout: time.Second}
		p.give(c, nil)
		time.Sleep(keepIdle - 1)
		if got, err := p.take(); got != c || err != nil {
			t.Fatal("the connection did not stay", err)
		}
		p.give(c, nil)
		given := time.Now()
		time.Sleep(keepIdle - 1)
		synctest.Wait()
		if len(ended) != 0 {
			t.Fatal("ended by the timer of its earlier stay")
		}
		if got := (<-ended).Sub(given); got != keepIdle {
			t.Fatalf("ended after %v", got)
		}
		if got, _ := p.take(); got != nil {
			t.Fatal("an ended connection was taken")
		}
	})
}

func TestPasswordNeedsEncryption(t *testing.T) {
	a := &authentication{username: "u", password: "p", host: "localhost"}
	_, sent, err := a.Start(&smtp.ServerInfo{Name: "localhost", TLS: false, Auth: []string{"PLAIN", "SCRAM-SHA-256"}})
	if !errors.Is(err, errUnencrypted) || sent != nil {
		t.Fatal(sent, err)
	}
	for _, c := range []struct {
		offered []string
		want    string
	}{
		{[]string{"PLAIN", "SCRAM-SHA-1", "SCRAM-SHA-256"}, "SCRAM-SHA-256"},
		{[]string{"CRAM-MD5", "LOGIN"}, "LOGIN"},
		{[]string{"CRAM-MD5"}, "CRAM-MD5"},
	} {
		if got, _, err := a.Start(&smtp.ServerInfo{Name: "localhost", TLS: true, Auth: c.offered}); got != c.want ||
			err != nil {
			t.Errorf("%v: %s %v", c.offered, got, err)
		}
	}
}
