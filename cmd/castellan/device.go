package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"slices"
	"strings"

	"castellan/domain/device"
)

type deviceCmd struct {
	Enroll  deviceEnrollCmd  `cmd:"" help:"Make a device and register it with an account."`
	Ongoing deviceOngoingCmd `cmd:"" help:"List the approvals that wait for this device."`
	Approve deviceApproveCmd `cmd:"" help:"Approve one of them."`
	Deny    deviceDenyCmd    `cmd:"" help:"Deny one of them; what was asked for does not happen."`
}

// deviceFile says which device a command is.
type deviceFile struct {
	Key string `help:"File with the device's private key (0600)." default:"castellan-device.json" placeholder:"FILE"`
}

type deviceEnrollCmd struct {
	deviceFile
	Server      string `help:"Base URL of the service." required:"" placeholder:"URL"`
	Audience    string `help:"The service's own http.public_url, where it is not the URL of --server." placeholder:"URL"`
	Token       string `help:"x-auth token; prefer another source." env:"CASTELLAN_DEVICE_TOKEN" placeholder:"TOKEN"`
	TokenFile   string `help:"File whose first line is the token." type:"existingfile" placeholder:"FILE"`
	Alg         string `help:"Kind of key: ES256 (P-256) or EdDSA (Ed25519)." enum:"ES256,EdDSA" default:"ES256"`
	Brand       string `help:"What the account's owner reads in the list of devices." default:"Castellan"`
	Model       string `help:"Likewise." default:"Demo device"`
	Description string `help:"Likewise." default:"castellan device"`
	Platform    string `help:"Likewise." default:"cli"`
	PushTarget  string `help:"Where the device is woken, as JSON; see above." placeholder:"JSON"`
	Method      string `help:"SMS, MAIL or TOTP; default: the account's first method." enum:",SMS,MAIL,TOTP" default:""`
	Code        string `help:"Its code, where it is known already (TOTP)." placeholder:"CODE"`
}

func (deviceEnrollCmd) Help() string {
	return `A complete device for a demonstration or a test. Its private key is made here and
stays in the file of --key (0600); the service gets the public one. The token is
read from CASTELLAN_DEVICE_TOKEN, --token-file, --token, or the first line of
standard input, and is neither shown nor kept. Other users of this machine may see
a command line, so prefer one of the others to --token:

  castellan device enroll --server http://127.0.0.1:8080 --token-file token.txt

The service asks for a second factor first (action DEVICE_ADD): type the code that
it sends, or pipe it as the next line of standard input. --push-target says where
the device is woken, as one of

  {"type":"webhook","url":"https://…"}
  {"type":"webpush","endpoint":"https://…","keys":{"p256dh":"…","auth":"…"}}

Without it, ask with "device ongoing". Afterwards

  castellan device ongoing
  castellan device approve`
}

// challengeAnswer is the start of a challenge.
type challengeAnswer struct {
	Challenge struct {
		MethodList []challengeMethod `json:"methodList"`
	} `json:"challenge"`
}

type challengeMethod struct{ ID, Name, Hint string }

// outcome is an answer to a method, or the result of a challenge.
type outcome struct {
	Action      string `json:"action"`
	ChallengeID string `json:"challengeId"`
	ExecResult  *struct {
		Success bool   `json:"success"`
		Code    string `json:"code"`
		Message string `json:"message"`
		Data    struct {
			DeviceID string `json:"deviceId"`
		} `json:"data"`
	} `json:"execResult"`
}

func (c deviceEnrollCmd) Run(e *env) (err error) {
	var p phone
	if p.Server, err = serverURL(c.Server); err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	if p.Audience = p.Server; c.Audience != "" {
		if p.Audience, err = serverURL(c.Audience); err != nil {
			return fmt.Errorf("--audience: %w", err)
		}
	}
	in := bufio.NewReader(io.LimitReader(e.in, 64<<10))
	token, err := c.token(e, in)
	if err != nil {
		return err
	}
	if p.Key, err = newPrivateKey(c.Alg); err != nil {
		return err
	}
	if err := p.write(c.Key, true); err != nil {
		return err
	}
	if p.DeviceID, err = c.enroll(e, p, token, in); err != nil {
		return errors.Join(err, os.Remove(c.Key))
	}
	if err := p.write(c.Key, false); err != nil {
		return err
	}
	_, err = fmt.Fprintf(e.out, "registered as %s; the device is in %s\n", p.DeviceID, c.Key)
	return err
}

func (c deviceEnrollCmd) token(e *env, in *bufio.Reader) (string, error) {
	text := c.Token
	switch {
	case c.TokenFile != "":
		b, err := os.ReadFile(c.TokenFile)
		if err != nil {
			return "", err
		}
		text, _, _ = strings.Cut(string(b), "\n")
	case text == "":
		if f, ok := e.in.(*os.File); ok {
			if st, err := f.Stat(); err == nil && st.Mode()&os.ModeCharDevice != 0 {
				return "", errors.New("give the token by CASTELLAN_DEVICE_TOKEN, --token-file or a pipe: a terminal would show it")
			}
		}
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the token: %w", err)
		}
		text = line
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", errors.New("the x-auth token of the account is needed; see castellan device enroll --help")
	}
	return text, nil
}

// enroll registers the public key and returns the device's id.
func (c deviceEnrollCmd) enroll(e *env, p phone, token string, in *bufio.Reader) (string, error) {
	public, ok := device.PublicKey(p.Key.Signer)
	if !ok {
		return "", errors.New("no public key")
	}
	body := map[string]any{
		"publicKey":   public,
		"brand":       c.Brand,
		"model":       c.Model,
		"description": c.Description,
		"platform":    c.Platform,
	}
	if c.PushTarget != "" {
		if !json.Valid([]byte(c.PushTarget)) {
			return "", errors.New("--push-target is not JSON")
		}
		body["pushTarget"] = json.RawMessage(c.PushTarget)
	}
	var started challengeAnswer
	headers, err := p.send(
		e.ctx,
		"POST",
		"/auth/devices",
		body,
		map[string]string{"x-auth": token},
		&device.Claims{Issuer: public.Thumbprint()},
		&started,
	)
	if err != nil {
		return "", err
	}
	auth := map[string]string{"p-auth": headers.Get("p-auth")}
	methods, known := started.Challenge.MethodList, c.Code
	if c.Method != "" { // it comes first; more may be needed
		i := slices.IndexFunc(methods, func(m challengeMethod) bool { return m.Name == c.Method })
		if i < 0 {
			return "", fmt.Errorf("the account has no %s", c.Method)
		}
		methods = slices.Concat(methods[i:i+1], methods[:i], methods[i+1:])
	}
	for _, m := range methods {
		if !slices.Contains([]string{"SMS", "MAIL", "TOTP"}, m.Name) {
			continue
		}
		code := known
		if known = ""; code == "" {
			fmt.Fprintf(e.out, "code by %s %s: ", m.Name, m.Hint)
			line, err := in.ReadString('\n')
			fmt.Fprintln(e.out)
			if code = strings.TrimSpace(line); code == "" {
				return "", errors.Join(errors.New("a code is needed"), ignoreEOF(err))
			}
		}
		var got outcome
		if _, err := p.send(e.ctx, "POST", "/auth/2fa/challenge/complete",
			map[string]string{"methodId": m.ID, "method": m.Name, "value": code}, auth, nil, &got); err != nil {
			return "", err
		}
		if got.ChallengeID != "" && got.ExecResult == nil { // the action takes its time
			auth["prefer"] = "wait=30"
			if _, err := p.send(e.ctx, "GET", "/auth/2fa/challenge/result", nil, auth, nil, &got); err != nil {
				return "", err
			}
		}
		switch r := got.ExecResult; {
		case r == nil: // more is needed
		case !r.Success:
			return "", fmt.Errorf("%s: %s", r.Code, r.Message)
		default:
			return r.Data.DeviceID, nil
		}
	}
	return "", errors.New("the account has no method left that a code can answer")
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

// approval is what waits for an answer, as far as a person needs it here.
type approval struct {
	Body string `json:"body"`
	Data struct {
		ChallengeID    string `json:"challengeId"`
		MethodID       string `json:"methodId"`
		Action         string `json:"action"`
		ActionTitle    string `json:"actionTitle"`
		NumberMatching bool   `json:"numberMatching"`
		Params         struct {
			DateTime  string `json:"dateTime"`
			Expire    int64  `json:"expire"`
			InfoTable struct {
				Data [][]string `json:"data"`
			} `json:"infoTable"`
		} `json:"params"`
	} `json:"data"`
}

func (p phone) ongoing(e *env, into any) error {
	_, err := p.send(
		e.ctx,
		"GET",
		"/auth/2fa/challenge/ongoing?deviceId="+url.QueryEscape(p.DeviceID),
		nil,
		nil,
		&device.Claims{Issuer: p.DeviceID},
		into,
	)
	return err
}

type deviceOngoingCmd struct {
	deviceFile
	JSON bool `help:"Print the answer of the service as it is." name:"json"`
}

func (c deviceOngoingCmd) Run(e *env) error {
	p, err := readPhone(c.Key)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := p.ongoing(e, &raw); err != nil {
		return err
	}
	if c.JSON {
		_, err := fmt.Fprintf(e.out, "%s\n", raw)
		return err
	}
	var all []approval
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(e.out, "nothing waits for this device")
	}
	for _, a := range all {
		d := a.Data
		fmt.Fprintf(e.out, "%s  %s\n  %s, %d s left\n", d.ChallengeID, printable(a.Body), d.Params.DateTime, d.Params.Expire)
		for _, row := range d.Params.InfoTable.Data {
			fmt.Fprintf(e.out, "  %s\n", printable(strings.Join(row, ": ")))
		}
		if d.NumberMatching {
			fmt.Fprintln(e.out, "  to approve, give the number that the other screen shows (--number)")
		}
	}
	return nil
}

// printable keeps what others wrote from steering the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// deviceAnswer is what approve and deny have in common.
type deviceAnswer struct {
	deviceFile
	Challenge string `arg:"" optional:"" help:"Id of the challenge; needed where several wait."`
}

func (c deviceAnswer) answer(e *env, value string) error {
	p, err := readPhone(c.Key)
	if err != nil {
		return err
	}
	var all []approval
	if err := p.ongoing(e, &all); err != nil {
		return err
	}
	if c.Challenge != "" {
		all = slices.DeleteFunc(all, func(a approval) bool { return a.Data.ChallengeID != c.Challenge })
	}
	switch len(all) {
	case 1:
	case 0:
		return errors.New("nothing of this kind waits for this device")
	default:
		return fmt.Errorf("%d approvals wait; say which, see castellan device ongoing", len(all))
	}
	d := all[0].Data
	body := map[string]string{
		"challengeId": d.ChallengeID,
		"methodId":    d.MethodID,
		"method":      "PUSH",
		"value":       value,
		"deviceId":    p.DeviceID,
	}
	claims := &device.Claims{Issuer: p.DeviceID, Challenge: d.ChallengeID, MethodID: d.MethodID, Value: value}
	var got outcome
	if _, err := p.send(e.ctx, "POST", "/auth/2fa/challenge/complete", body, nil, claims, &got); err != nil {
		return err
	}
	said := "approved; more is needed elsewhere"
	switch r := got.ExecResult; {
	case value == "DENIED":
		said = "denied"
	case r != nil && r.Success:
		said = "approved, and done"
	case r != nil:
		said = "approved, but it could not be done"
	case got.ChallengeID != "":
		said = "approved"
	}
	_, err = fmt.Fprintf(e.out, "%s: %s\n", d.ActionTitle, said)
	return err
}

type deviceApproveCmd struct {
	deviceAnswer
	Number string `help:"The number on the other screen, for number matching." placeholder:"NN"`
}

func (c deviceApproveCmd) Run(e *env) error {
	if c.Number != "" {
		return c.answer(e, "APPROVED:"+c.Number)
	}
	return c.answer(e, "APPROVED")
}

type deviceDenyCmd struct{ deviceAnswer }

func (c deviceDenyCmd) Run(e *env) error { return c.answer(e, "DENIED") }
