// Package adapters creates the adapters of external systems from the configuration. The service, its checks and the
// commands share them.
//
// Start reading at Senders.
package adapters

import (
	"crypto/ecdsa"
	"fmt"
	"maps"
	"strings"
	"time"

	"castellan/config"
	"castellan/domain/delivery/message"
	"castellan/domain/kit/blob"
	"castellan/domain/money/provider"
	"castellan/outbound/dispatch"
	"castellan/outbound/folder"
	outboundidentity "castellan/outbound/identity"
	"castellan/outbound/mail"
	outboundprovider "castellan/outbound/provider"
	"castellan/outbound/push"
	outboundrate "castellan/outbound/rate"
	"castellan/outbound/s3"
	"castellan/outbound/sms"
)

// Senders returns the available channels: those given, those that an operator configured, and in development mode the
// others by the development outbox (D-2FA-29). Wake-ups need no account at a provider and are on until they are
// switched off.
func Senders(c config.Config, given map[message.Channel]message.Sender,
	vapid func() []*ecdsa.PrivateKey) (map[message.Channel]message.Sender, error) {
	out := map[message.Channel]message.Sender{}
	if c.Mail.Configured() {
		m, err := Mail(c)
		if err != nil {
			return nil, fmt.Errorf("mail: %w", err)
		}
		out[message.MAIL] = m
	}
	if c.SMS.Configured() {
		g, err := SMS(c.SMS)
		if err != nil {
			return nil, fmt.Errorf("sms: %w", err)
		}
		out[message.SMS] = g
	}
	if p := c.Push; p.Enabled {
		d, err := push.New(push.Config{VAPID: vapid, Contact: p.Contact, WebhookSecret: p.WebhookSecret.Reveal(),
			Hosts:        p.Hosts,
			AllowPrivate: p.AllowPrivate || c.Dev, AllowPlain: c.Dev, CAFile: p.CAFile, Timeout: p.Timeout})
		if err != nil {
			return nil, err
		}
		out[message.Push] = d
	}
	maps.Copy(out, given)
	if c.Dev {
		for _, ch := range []message.Channel{message.MAIL, message.SMS, message.Push} {
			if out[ch] == nil {
				out[ch] = dispatch.Local{}
			}
		}
	}
	return out, nil
}

// Mail returns the client of the mail server; it connects when it sends.
func Mail(c config.Config) (*mail.Sender, error) {
	m := c.Mail
	return mail.New(mail.Config{Host: m.Host, Port: m.Port, TLS: m.TLS, Username: m.Username,
		Password: m.Password.Reveal(),
		From:     m.From, FromName: m.FromName, CAFile: m.CAFile, Timeout: m.Timeout, Connections: c.Outbox.Workers})
}

// SMS returns the client of the SMS gateway.
func SMS(c config.SMS) (*sms.Sender, error) {
	return sms.New(sms.Config{URL: c.URL.Reveal(), Method: c.Method, Format: c.Format, Preset: c.Preset,
		Fields: c.Params.Reveal(), Body: c.Body.Reveal(),
		Headers: c.Headers.Reveal(), Username: c.Username, Password: c.Password.Reveal(), From: c.Sender,
		SuccessCodes: c.SuccessCodes, Timeout: c.Timeout})
}

// Balances returns the sources in the settings.
func Balances(c config.Providers) (provider.Sources, error) {
	sources := provider.Sources{}
	for name, key := range c.Accounts {
		var n provider.Name
		n.Provider, n.Account, _ = strings.Cut(name, "/")
		key, secret, _ := strings.Cut(key.Reveal(), ":")
		source, err := outboundprovider.NewExchange(outboundprovider.Config{URL: c.Exchanges[n.Provider], Key: key,
			Secret: secret, Header: c.KeyHeader, CAFile: c.CAFile, Timeout: c.Timeout, Now: time.Now})
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		sources[n] = source
	}
	for name, file := range c.Files {
		sources[provider.Name{Provider: name}] = outboundprovider.File(file)
	}
	return sources, nil
}

// Rates returns the provider of exchange rates.
func Rates(c config.Rates) (*outboundrate.Provider, error) {
	return outboundrate.New(outboundrate.Config{URL: c.URL.Reveal(), Header: c.KeyHeader, Key: c.Key.Reveal(),
		Codes: c.Currencies, CAFile: c.CAFile, Timeout: c.Timeout, Now: time.Now})
}

// Files opens the bucket, or the folder if no bucket is configured.
func Files(c config.Files) (blob.Store, error) {
	if host, bucket, secure := c.Bucket(); bucket != "" {
		return s3.New(s3.Config{Host: host, Secure: secure, Bucket: bucket, Region: c.S3Region,
			AccessKey: c.S3AccessKey, SecretKey: c.S3SecretKey.Reveal(), CAFile: c.S3CAFile})
	}
	return folder.Open(c.Folder)
}

// Identity returns the client of the national register; failed receives the errors of its calls and may be nil.
func Identity(c config.Config, failed func(error)) (*outboundidentity.Register, error) {
	return outboundidentity.New(outboundidentity.Config{URL: c.KYC.IdentityURL, Plain: c.Dev, CAFile: c.KYC.IdentityCAFile,
		Timeout: c.KYC.IdentityTimeout, Now: time.Now, Failed: failed})
}
