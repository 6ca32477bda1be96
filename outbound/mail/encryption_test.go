package mail_test

import (
	"testing"

	"castellan/domain/kit/storetest"
	"castellan/outbound/mail"
)

func TestEncryptionIsMandatory(t *testing.T) {
	ca, stranger := newAuthority(t), newAuthority(t)
	for name, c := range map[string]struct {
		relay *relay
		ca    *authority
		tls   string
		part  string
	}{
		"no STARTTLS":      {newRelay(t, nil, false), ca, mail.STARTTLS, "STARTTLS"},
		"plain, TLS asked": {newRelay(t, nil, false), ca, mail.TLS, "tls"},
		"strange CA":       {newRelay(t, stranger.issue(t, "127.0.0.1"), false), ca, mail.STARTTLS, "certificate"},
		"strange CA, TLS":  {newRelay(t, stranger.issue(t, "127.0.0.1"), true), ca, mail.TLS, "certificate"},
		"system CAs":       {newRelay(t, ca.issue(t, "127.0.0.1"), false), nil, mail.STARTTLS, "certificate"},
		"other host":       {newRelay(t, ca.issue(t, "mail.example.net"), false), ca, mail.STARTTLS, "certificate"},
		"other host, TLS":  {newRelay(t, ca.issue(t, "mail.example.net"), true), ca, mail.TLS, "certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newSender(t, c.relay, c.ca, func(cfg *mail.Config) {
				cfg.TLS, cfg.Username, cfg.Password = c.tls, relayUser, relayPassword
			})
			checkFailure(t, s.Send(t.Context(), "1", rendered("en")), false, c.part)
			if _, attempts := c.relay.counts(); attempts != 0 || len(c.relay.messages()) != 0 {
				t.Error("something was sent")
			}
		})
	}
}

func TestUnencryptedOnLoopback(t *testing.T) {
	r := newRelay(t, nil, false)
	for _, host := range []string{"127.0.0.1", "localhost"} {
		s := newSender(t, r, nil, func(c *mail.Config) { c.TLS, c.Host = mail.None, host })
		storetest.Must(t, s.Send(t.Context(), "1", rendered("en")))
	}
	storetest.Equal(t, len(r.messages()), 2, "messages")
}

func TestAuthentication(t *testing.T) {
	for name, c := range map[string]struct {
		mechanisms []string
		password   string
		part       string // of the error; "": accepted
	}{
		"plain":             {[]string{"PLAIN"}, relayPassword, ""},
		"login":             {[]string{"LOGIN"}, relayPassword, ""},
		"plain before":      {[]string{"CRAM-MD5", "LOGIN", "PLAIN", "NTLM"}, relayPassword, ""},
		"wrong":             {[]string{"PLAIN"}, "wrong", "authenticate: server answered 535 5.7.8"},
		"wrong, login":      {[]string{"LOGIN"}, "wrong", "authenticate: server answered 535 5.7.8"},
		"nothing fits":      {[]string{"XOAUTH2"}, relayPassword, "the server offers none of"},
		"no authentication": {nil, relayPassword, "the server offers none of"},
	} {
		t.Run(name, func(t *testing.T) {
			r, ca := secured(t)
			r.mechanisms = c.mechanisms
			s := newSender(t, r, ca, func(cfg *mail.Config) { cfg.Username, cfg.Password = relayUser, c.password })
			err := s.Send(t.Context(), "1", rendered("en"))
			if c.part == "" {
				if err != nil || len(r.messages()) != 1 || r.messages()[0].user != relayUser {
					t.Fatal(err, len(r.messages()))
				}
				return
			}
			checkFailure(t, err, false, c.part)
			storetest.Lacks(t, err.Error(), "wrong", "the error")
			storetest.Equal(t, len(r.messages()), 0, "a message was sent all the same")
		})
	}
}
