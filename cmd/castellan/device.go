package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"castellan/client"
)

type deviceCmd struct {
	Enroll  deviceEnrollCmd  `cmd:"" help:"Create a device and register it with an account."`
	Ongoing deviceOngoingCmd `cmd:"" help:"List the pending challenges of this device."`
	Approve deviceApproveCmd `cmd:"" help:"Approve a pending challenge."`
	Deny    deviceDenyCmd    `cmd:"" help:"Deny a pending challenge; its operation is not executed."`
	Alarm   deviceAlarmCmd   `cmd:"" help:"Report a challenge that the account owner did not start; all sessions end."`
}

// deviceFile names the file of the device.
type deviceFile struct {
	Key string `help:"File with the device's private key (0600)." default:"castellan-device.json" placeholder:"FILE"`
}

type deviceEnrollCmd struct {
	deviceFile
	Server      string `help:"Base URL of the service." required:"" placeholder:"URL"`
	Audience    string `help:"http.public_url of the service (default: the URL of --server)." placeholder:"URL"`
	Token       string `help:"x-auth token; other users can read it." env:"CASTELLAN_DEVICE_TOKEN" placeholder:"TOKEN"`
	TokenFile   string `help:"File whose first line is the token." placeholder:"FILE"`
	Alg         string `help:"Kind of key: ES256 (P-256) or EdDSA (Ed25519)." enum:"ES256,EdDSA" default:"ES256"`
	Brand       string `help:"Brand in the list of devices." default:"Castellan"`
	Model       string `help:"Model in the list of devices." default:"Demo device"`
	Description string `help:"Description in the list of devices." default:"castellan device"`
	Platform    string `help:"Platform in the list of devices." default:"cli"`
	PushTarget  string `help:"Push target of the device, as JSON; see above." placeholder:"JSON"`
	Method      string `help:"Method of the second factor (default: the first one)." enum:",SMS,MAIL,TOTP" default:""`
	Code        string `help:"Code of the method, if it is already known (TOTP)." placeholder:"CODE"`
}

func (deviceEnrollCmd) Help() string {
	return `Creates a device for a demonstration or a test. The private key is created here and
stored in the file of --key (0600); the service gets the public key. The token comes
from CASTELLAN_DEVICE_TOKEN, --token-file, --token or the first line of standard input,
and is neither printed nor stored. Prefer another source to --token, because other users
of this machine can read command lines.

  castellan device enroll --server http://127.0.0.1:8080 --token-file token.txt

The service first requires a second factor (action DEVICE_ADD): type the code that it
sends, or pipe it as the next line of standard input. --push-target is one of

  {"type":"webhook","url":"https://…"}
  {"type":"webpush","endpoint":"https://…","keys":{"p256dh":"…","auth":"…"}}

Without it, poll with "device ongoing". Then run

  castellan device ongoing
  castellan device approve`
}

func (c deviceEnrollCmd) Run(e *env) (err error) {
	var p phone
	server, err := client.New(c.Server)
	if err != nil {
		return fmt.Errorf("--server: %w", err)
	}
	audience, err := client.New(cmp.Or(c.Audience, c.Server))
	if err != nil {
		return fmt.Errorf("--audience: %w", err)
	}
	p.Server, p.Audience = server.URL, audience.URL
	in := bufio.NewReader(io.LimitReader(e.in, 64<<10))
	if server.Token, err = c.token(e, in); err != nil {
		return err
	}
	if p.Key, err = newPrivateKey(c.Alg); err != nil {
		return err
	}
	if err := p.write(c.Key, true); err != nil {
		return err
	}
	if p.DeviceID, err = c.enroll(e, server, p, in); err != nil {
		return errors.Join(err, os.Remove(c.Key))
	}
	return e.printf(p.write(c.Key, false), "registered as %s; the device is saved in %s\n", p.DeviceID, c.Key)
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
				return "", errors.New("set CASTELLAN_DEVICE_TOKEN or --token-file, or use a pipe: a terminal shows the token")
			}
		}
		line, err := in.ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return "", fmt.Errorf("read the token: %w", err)
		}
		text = line
	}
	if text = strings.TrimSpace(text); text == "" {
		return "", errors.New("the x-auth token of the account is required; see castellan device enroll --help")
	}
	return text, nil
}

// enroll registers the public key and returns the device's id.
func (c deviceEnrollCmd) enroll(e *env, server *client.Client, p phone, in *bufio.Reader) (string, error) {
	if c.PushTarget != "" && !json.Valid([]byte(c.PushTarget)) {
		return "", errors.New("--push-target is not JSON")
	}
	d := &client.Device{Key: p.Key.Signer, Audience: p.Audience}
	f, err := server.Enroll(e.ctx, d, client.About{Brand: c.Brand, Model: c.Model, Description: c.Description,
		Platform: c.Platform, PushTarget: json.RawMessage(c.PushTarget)})
	if err != nil {
		return "", err
	}
	methods, known := f.Methods, c.Code
	if c.Method != "" { // it comes first; more may be needed
		i := slices.IndexFunc(methods, func(m client.Method) bool { return m.Name == c.Method })
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
				return "", errors.Join(errors.New("a code is required"), ignoreEOF(err))
			}
		}
		o, err := f.Complete(e.ctx, m, code)
		if err != nil {
			return "", err
		}
		if o.Done {
			err := d.Enrolled(o)
			return d.ID, err
		}
	}
	return "", errors.New("the account has no other method with a code")
}

func ignoreEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}

type deviceOngoingCmd struct {
	deviceFile
	JSON bool `help:"Print the JSON response of the service." name:"json"`
}

func (c deviceOngoingCmd) Run(e *env) error {
	server, d, err := readPhone(c.Key)
	if err != nil {
		return err
	}
	var raw json.RawMessage
	if err := server.Ongoing(e.ctx, d, &raw); err != nil {
		return err
	}
	if c.JSON {
		return e.printf(nil, "%s\n", raw)
	}
	var all []client.Approval
	if err := json.Unmarshal(raw, &all); err != nil {
		return err
	}
	if len(all) == 0 {
		fmt.Fprintln(e.out, "no challenge is pending for this device")
	}
	for _, a := range all {
		d := a.Data
		fmt.Fprintf(e.out, "%s  %s\n  %s, %d s left\n", d.ChallengeID, printable(a.Body), d.Params.DateTime, d.Params.Expire)
		if a.Intent != nil {
			for _, row := range a.Intent.Rows {
				fmt.Fprintf(e.out, "  %s: %s\n", printable(row.Label), printable(row.Value))
			}
		}
		if d.NumberMatching {
			fmt.Fprintln(e.out, "  to approve, pass the number on the other screen (--number)")
		}
	}
	return nil
}

// printable removes characters of foreign text that could control the terminal.
func printable(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}

// deviceAnswer is the common part of approve and deny.
type deviceAnswer struct {
	deviceFile
	Challenge string `arg:"" optional:"" help:"Id of the challenge; required if several are pending."`
}

// waiting reads the challenges that the command may mean.
func (c deviceAnswer) waiting(e *env) (server *client.Client, d *client.Device, all []client.Approval, err error) {
	if server, d, err = readPhone(c.Key); err == nil {
		err = server.Ongoing(e.ctx, d, &all)
	}
	if c.Challenge != "" {
		all = slices.DeleteFunc(all, func(a client.Approval) bool { return a.Data.ChallengeID != c.Challenge })
	}
	if err == nil && len(all) > 1 {
		err = fmt.Errorf("%d challenges are pending: pass the id of one; castellan device ongoing lists them", len(all))
	}
	return server, d, all, err
}

func (c deviceAnswer) answer(e *env, value string) error {
	server, d, all, err := c.waiting(e)
	if err == nil && len(all) == 0 {
		err = errors.New("no such challenge is pending for this device")
	}
	if err != nil {
		return err
	}
	o, err := server.Answer(e.ctx, d, all[0], value)
	said := "approved; the challenge requires other methods too"
	switch {
	case value == client.Denied:
		said = "denied"
	case o.Done && o.Success:
		said = "approved, and executed"
	case o.Done:
		said = "approved, but the operation failed"
	case o.ChallengeID != "":
		said = "approved"
	}
	return e.printf(err, "%s: %s\n", all[0].Data.ActionTitle, said)
}

type deviceApproveCmd struct {
	deviceAnswer
	Number string `help:"Number on the other screen, for number matching." placeholder:"NN"`
}

func (c deviceApproveCmd) Run(e *env) error {
	if c.Number != "" {
		return c.answer(e, client.Approved+":"+c.Number)
	}
	return c.answer(e, client.Approved)
}

type deviceDenyCmd struct{ deviceAnswer }

func (c deviceDenyCmd) Run(e *env) error { return c.answer(e, client.Denied) }

type deviceAlarmCmd struct{ deviceAnswer }

func (deviceAlarmCmd) Help() string {
	return `Denies a challenge that the account owner did not start. The service then ends all
sessions of the account, closes its other challenges and notifies the owner. If the
challenge has already ended, pass its id.`
}

func (c deviceAlarmCmd) Run(e *env) error {
	server, d, all, err := c.waiting(e)
	if err != nil {
		return err
	}
	challenge := c.Challenge
	if len(all) == 1 {
		challenge = all[0].Data.ChallengeID
		if _, err := server.Answer(e.ctx, d, all[0], client.Denied); err != nil && client.CodeOf(err) == "" {
			return err // a refusal means that the challenge has ended; the alarm is raised all the same
		}
	}
	if challenge == "" {
		return errors.New("no challenge is pending for this device: pass the id of the challenge")
	}
	ended, err := server.Alarm(e.ctx, d, challenge)
	return e.printf(err, "the challenge is reported; %d sessions ended\n", ended)
}
