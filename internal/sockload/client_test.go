package sockload_test

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"castellan/domain/proof/device"
	"castellan/internal/sockload"
)

var web = &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}, Timeout: 30 * time.Second}

// started is a LOGIN challenge.
type started struct {
	user      int
	token     string
	Challenge struct {
		ChallengeID string
		MethodList  []struct{ ID, Name string }
	}
}

// login starts a challenge of a user at the first node.
func (s *service) login(n int) (c started, err error) { return s.node.login(n) }

// login repeats a refusal of a busy service.
func (n node) login(user int) (c started, err error) {
	body := fmt.Sprintf(`{"email":"u%d@example.com","password":%q}`, user, secret)
	for {
		r, err := web.Post("http://"+n.addr+"/auth/login", "application/json", strings.NewReader(body))
		if err != nil {
			return c, err
		}
		text, err := io.ReadAll(r.Body)
		r.Body.Close()
		switch {
		case err != nil:
			return c, err
		case r.StatusCode == http.StatusServiceUnavailable && r.Header.Get("Retry-After") != "":
			time.Sleep(time.Second)
		case r.StatusCode != http.StatusOK:
			return c, fmt.Errorf("login: %d %s", r.StatusCode, text)
		default:
			c.user, c.token = user, r.Header.Get("p-auth")
			return c, json.Unmarshal(text, &c)
		}
	}
}

// challenges starts challenges of every user from first to last, and returns the tokens.
func (s *service) challenges(first, last, each int) []string {
	s.tb.Helper()
	tokens := make([]string, (last-first)*each)
	var wg sync.WaitGroup
	for part := range 16 {
		wg.Go(func() {
			for i := part; i < len(tokens); i += 16 {
				c, err := s.at(i).login(first + i/each)
				if err != nil {
					s.tb.Error(err)
					return
				}
				tokens[i] = c.token
			}
		})
	}
	wg.Wait()
	web.CloseIdleConnections()
	if s.tb.Failed() {
		s.tb.FailNow()
	}
	return tokens
}

// open opens a socket for each token, in turn at each node. The node of a socket is not always that of its challenge.
func (s *service) open(tokens []string) (stop func() error) {
	s.tb.Helper()
	var stops []func() error
	for i, n := range s.all {
		var own []string
		for j, token := range tokens {
			if j/each%len(s.all) == i {
				own = append(own, token)
			}
		}
		stop, err := sockload.Open(n.addr, own)
		if err != nil {
			s.tb.Fatal(err)
		}
		stops = append(stops, stop)
	}
	return func() (err error) {
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
		return err
	}
}

// mail returns the right answer to the challenge's method MAIL, with the newest code in the development outbox.
func (s *service) mail(c started) []byte {
	s.tb.Helper()
	r, err := web.Get(fmt.Sprintf("http://%s/dev/outbox?to=u%d@example.com", s.addr, c.user))
	if err != nil {
		s.tb.Fatal(err)
	}
	defer r.Body.Close()
	var letters []struct{ Code string }
	if err := json.NewDecoder(r.Body).Decode(&letters); err != nil || len(letters) == 0 {
		s.tb.Fatal("no letter", err)
	}
	for _, m := range c.Challenge.MethodList {
		if m.Name == "MAIL" {
			return fmt.Appendf(nil, `{"methodId":%q,"method":"MAIL","value":%q}`, m.ID, letters[0].Code)
		}
	}
	s.tb.Fatal("no method MAIL")
	return nil
}

// line is a kept connection for timed requests.
type line struct {
	net.Conn
	r *bufio.Reader
}

func (s *service) line() *line {
	s.tb.Helper()
	c, err := net.Dial("tcp", s.addr)
	if err != nil {
		s.tb.Fatal(err)
	}
	s.tb.Cleanup(func() { c.Close() })
	return &line{c, bufio.NewReader(c)}
}

// approve returns the approval of the account's device, and its signature.
func (s *service) approve(c started) (body []byte, header string, err error) {
	for _, m := range c.Challenge.MethodList {
		if m.Name == "PUSH" {
			body = fmt.Appendf(
				nil,
				`{"challengeId":%q,"methodId":%q,"method":"PUSH","value":"APPROVED","deviceId":%q}`,
				c.Challenge.ChallengeID,
				m.ID,
				deviceID(c.user),
			)
			header, err = device.Sign(
				s.keys[c.user],
				device.Claims{Issuer: deviceID(c.user), Audience: "http://" + s.addr, Method: http.MethodPost, Target: completePath,
					BodyHash: device.HashBody(body), Challenge: c.Challenge.ChallengeID, MethodID: m.ID, Value: "APPROVED"},
			)
			return body, "device-signature: " + header, err
		}
	}
	return nil, "", errors.New("no push is offered")
}

const completePath = "/auth/2fa/challenge/complete"

// complete sends the answer to a method with a line of header; answered waits for the response.
func (l *line) complete(header string, body []byte) error {
	_, err := fmt.Fprintf(
		l,
		"POST "+completePath+" HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "+
			"%d\r\n%s\r\n\r\n%s",
		len(body),
		header,
		body,
	)
	return err
}

func (l *line) answered() error {
	r, err := http.ReadResponse(l.r, nil)
	if err != nil {
		return err
	}
	if text, err := io.ReadAll(r.Body); err != nil || r.StatusCode != http.StatusOK {
		return fmt.Errorf("complete: %d %s %w", r.StatusCode, text, err)
	}
	return nil
}
