package fetch

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"time"
)

// maxDrainBytes is how much of an answer is drained; a longer one costs the connection.
const maxDrainBytes = 4 << 10

// Roots reads trusted certificates (PEM) from a file; nil for "", which trusts those of the system. also adds them to
// those of the system.
func Roots(file string, also bool) (roots *x509.CertPool, err error) {
	if file == "" {
		return nil, nil
	}
	roots = x509.NewCertPool()
	if also {
		if roots, err = x509.SystemCertPool(); err != nil {
			return nil, err
		}
	}
	pem, err := os.ReadFile(file)
	if err == nil && !roots.AppendCertsFromPEM(pem) {
		err = errors.New("the file contains no certificate")
	}
	return roots, err
}

// HTTPClient returns a client whose calls take at most a time; 0: no limit. It trusts roots, or the certificates of the
// system if they are nil. A redirect is an answer: following one would send a body or a key to another address than the
// configured one.
func HTTPClient(timeout time.Duration, roots *x509.CertPool, transport *http.Transport) *http.Client {
	transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}
	return &http.Client{Timeout: timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Body sends a request and returns the body of the answer, which must have status 200 and at most that many bytes. The
// errors name the other side as service, and contain neither its address nor the answer.
func Body(client *http.Client, request *http.Request, service string, most int64) ([]byte, error) {
	answer, err := client.Do(request) // #nosec G704 -- the configuration names the server
	if err != nil {
		return nil, fmt.Errorf("the %s cannot be reached: %w", service, Unaddressed(err))
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the %s answered %d", service, answer.StatusCode)
	}
	body, err := io.ReadAll(io.LimitReader(answer.Body, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("the answer is truncated: %w", err)
	case int64(len(body)) > most:
		return nil, fmt.Errorf("the answer is longer than %d KiB", most>>10)
	}
	return body, nil
}

// Drain reads the rest of a short answer, so that its connection can be reused, and closes it.
func Drain(answer *http.Response) {
	_, _ = io.Copy(io.Discard, io.LimitReader(answer.Body, maxDrainBytes))
	_ = answer.Body.Close()
}

// Unaddressed removes the address from an error of an http.Client. It may contain a key.
func Unaddressed(err error) error {
	if with, is := errors.AsType[*url.Error](err); is {
		return with.Err
	}
	return err
}

// RetryAfter reads the header of an answer: seconds, or a date (RFC 9110, section 10.2.3). It is 0 for any other value
// and a past date, and at most the given time, because a faulty service can send any.
func RetryAfter(answer *http.Response, now time.Time, most time.Duration) (wait time.Duration) {
	value := answer.Header.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		wait = time.Duration(seconds) * time.Second
	} else if at, err := http.ParseTime(value); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), most)
}
