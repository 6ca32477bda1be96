package main

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha1" // #nosec G505: what authenticators compute
	"crypto/sha256"
	"encoding/base32"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

// users is how many accounts log in while the nodes restart.
const users = 24

const (
	userPassword = "a password of this story"
	totpSecret   = "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP"
	largest      = 20 << 20 // of a body with a document, in bytes
)

// errStatus marks an error that the service answered.
var errStatus = errors.New("")

// get returns the status of a GET with a Host.
func get(url, host string) (int, error) {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	r.Host = host
	a, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	return a.StatusCode, a.Body.Close()
}

// call sends a request as the documents say: after 503 and after a lost connection again, a second later, where that is
// harmless.
func call(method, url string, headers map[string]string, in any, harmless bool) (http.Header, []byte, error) {
	var body []byte
	if in != nil {
		var err error
		if body, err = json.Marshal(in); err != nil {
			return nil, nil, err
		}
	}
	for n := 1; ; n++ {
		var h http.Header
		var text []byte
		again := true
		r, err := http.NewRequest(method, url, bytes.NewReader(body))
		if err != nil {
			return nil, nil, err
		}
		if in != nil {
			r.Header.Set("Content-Type", "application/json")
		}
		for k, v := range headers {
			r.Header.Set(k, v)
		}
		a, err := http.DefaultClient.Do(r)
		if err == nil {
			h = a.Header
			text, err = io.ReadAll(a.Body)
			a.Body.Close()
			if err == nil && a.StatusCode >= 300 {
				err = fmt.Errorf("%s %s: %d %.300s%w", method, url, a.StatusCode, text, errStatus)
				again = a.StatusCode == http.StatusServiceUnavailable
			}
		}
		if err == nil || !harmless || !again || n == 20 {
			return h, text, err
		}
		time.Sleep(time.Second)
	}
}

func phone(n int) string { return fmt.Sprintf("532%07d", 1000000+n) }

// imported are the accounts of the story, as castellan user import reads them.
func imported() []byte {
	salt := "a salt"
	sum := sha256.Sum256([]byte(salt + userPassword))
	var b bytes.Buffer
	for n := range users {
		fmt.Fprintf(&b, `{"email":"user-%d@example.com","emailVerified":true,"countryCode":"90","phoneNumber":"%s",`+
			`"status":"active","totpSecret":"%s","hash":{"alg":"sha256","hash":"%x","salt":"%s","encoding":"hex"}}`+"\n",
			n, phone(n), totpSecret, sum, hex.EncodeToString([]byte(salt)))
	}
	return b.Bytes()
}

// code is that of an authenticator (RFC 6238).
func code(now time.Time) string {
	secret, _ := base32.StdEncoding.DecodeString(totpSecret)
	mac := hmac.New(sha1.New, secret)
	_ = binary.Write(mac, binary.BigEndian, uint64(now.Unix()/30)) // #nosec G115: the time is after 1970
	sum := mac.Sum(nil)
	at := sum[len(sum)-1] & 15
	return fmt.Sprintf("%06d", (binary.BigEndian.Uint32(sum[at:])&0x7fffffff)%1000000)
}

// login returns the token of an account.
func login(front string, n int) (string, error) {
	headers, text, err := call("POST", front+"/auth/login", nil,
		map[string]string{"countryCode": "90", "phoneNumber": phone(n), "password": userPassword}, true)
	if err != nil {
		return "", err
	}
	var started struct {
		Challenge struct {
			Methods []struct{ ID, Name string } `json:"methodList"`
		} `json:"challenge"`
	}
	if err := json.Unmarshal(text, &started); err != nil || len(started.Challenge.Methods) != 1 {
		return "", fmt.Errorf("login: %w: %s", err, text)
	}
	m := started.Challenge.Methods[0]
	headers, text, err = call("POST", front+"/auth/2fa/challenge/complete",
		map[string]string{"p-auth": headers.Get("p-auth")},
		map[string]string{"methodId": m.ID, "method": m.Name, "value": code(time.Now())}, true)
	if token := headers.Get("x-auth"); err != nil || token != "" {
		return token, err
	}
	return "", fmt.Errorf("no token: %s", text)
}

// upload sends a document of a size.
func upload(front, token string, size int) error {
	pdf := "JVBERi0xLjQK" // %PDF-1.4
	_, _, err := call("POST", front+"/document/upload-document", map[string]string{"x-auth": token},
		map[string]string{"fileName": "a.pdf", "description": "a story",
			"base64Data": pdf + strings.Repeat("ICAg", (size-len(pdf))/4)}, false)
	return err
}

func documents(front, token string) (int, error) {
	_, text, err := call("GET", front+"/user/get-documents?limit=100", map[string]string{"x-auth": token}, nil, true)
	var all []json.RawMessage
	if err == nil {
		err = json.Unmarshal(text, &all)
	}
	return len(all), err
}

// inUse logs in through the front, sends the largest document and a larger one, and restarts the nodes one by one under
// logins and uploads. An acknowledged one must be there at the end, and no client that repeats as documented sees an
// error.
func (s *session) inUse(front, dir, exec string, files bool, restarts ...string) error {
	if err := s.follow(exec+" /castellan user import --format castellan /dev/stdin", dir, string(imported())); err != nil {
		return err
	}
	token, err := login(front, 0)
	if err != nil {
		return err
	}
	if files {
		if err := upload(front, token, largest-200); err != nil {
			return fmt.Errorf("a document of 20 MiB: %w", err)
		}
		if err := upload(front, token, 40<<20); err == nil || !strings.Contains(err.Error(), "PAYLOAD_TOO_LARGE") {
			return fmt.Errorf("a document of 40 MiB: %w", err)
		}
	}
	var over atomic.Bool
	finished := make(chan error, 1)
	tokens := map[int]string{0: token}
	stored := map[int]int{}
	go func() {
		var errs []error
		for n := 1; n < users || !over.Load(); n++ {
			who := n % users
			if tokens[who] == "" {
				t, err := login(front, who)
				if errs = append(errs, err); err != nil {
					break
				}
				tokens[who] = t
			}
			if files { // a lost answer is not repeated: the document may be stored
				err := upload(front, tokens[who], 10<<10)
				if err == nil {
					stored[who]++
				} else if errors.Is(err, errStatus) && !strings.Contains(err.Error(), ": 503 ") {
					errs = append(errs, err)
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
		finished <- errors.Join(errs...)
	}()
	for _, restart := range restarts {
		if err := s.follow(restart, dir, ""); err != nil {
			return err
		}
	}
	over.Store(true)
	if err := <-finished; err != nil {
		return fmt.Errorf("logins while the nodes restart: %w", err)
	}
	acknowledged := 0
	for n, t := range tokens {
		got, err := documents(front, t)
		if err != nil || got < stored[n] {
			return fmt.Errorf("user %d: %d documents, %d acknowledged, %w", n, got, stored[n], err)
		}
		acknowledged += stored[n]
	}
	fmt.Printf("  %d logins and %d documents acknowledged while the nodes restarted, none lost\n", len(tokens),
		acknowledged)
	return nil
}
