// Package adapters creates the adapters of external systems from the configuration. The service, its checks and the
// commands share them.
//
// Start reading at Senders.
package adapters

import (
	"crypto/ecdsa"
	"fmt"
	"maps"
	"slices"
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
	for ch, of := range channels {
		if !of.configured(c) {
			continue
		}
		sender, err := of.sender(c)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", strings.ToLower(string(ch)), err)
		}
		out[ch] = sender
	}
	if p := c.Push; p.Enabled {
		d, err := push.New(push.Config{VAPID: vapid, Contact: p.Contact, WebhookSecret: p.WebhookSecret.Reveal(),
			Hosts:        p.Hosts,
			AllowPrivate: p.AllowPrivate || c.Dev, AllowPlain: c.Dev, CAFile: p.CAFile, Timeout: p.Timeout,
			Now: time.Now})
		if err != nil {
			return nil, err
		}
		out[message.Push] = d
	}
	maps.Copy(out, given)
	if c.Dev {
		for _, ch := range append(slices.Collect(maps.Keys(channels)), message.Push) {
			if out[ch] == nil {
				out[ch] = dispatch.Local{}
			}
		}
	}
	return out, nil
}

// channel is the adapter of a channel that delivers codes and notices. A test requires one for each kind of second
// factor whose codes are sent.
type channel struct {
	configured func(config.Config) bool
	sender     func(config.Config) (message.Sender, error)
}

var channels = map[message.Channel]channel{
	message.MAIL: {func(c config.Config) bool { return c.Mail.Configured() },
		func(c config.Config) (message.Sender, error) { return Mail(c) }},
	message.SMS: {func(c config.Config) bool { return c.SMS.Configured() },
		func(c config.Config) (message.Sender, error) { return SMS(c.SMS) }},
}

// Offers reports whether an installation with these settings delivers by a channel.
func Offers(c config.Config, ch message.Channel) bool {
	of, ok := channels[ch]
	return ok && (of.configured(c) || c.Dev)
}

// Mail returns the client of the mail server; it connects when it sends.
func Mail(c config.Config) (*mail.Sender, error) {
	m := c.Mail
	return mail.New(mail.Config{Host: m.Host, Port: m.Port, TLS: m.TLS, Username: m.Username,
		Password: m.Password.Reveal(),
		From:     m.From, FromName: m.FromName, CAFile: m.CAFile, Timeout: m.Timeout, Connections: c.Outbox.Workers,
		Now: time.Now})
}

// SMS returns the client of the SMS gateway.
func SMS(c config.SMS) (*sms.Sender, error) {
	return sms.New(sms.Config{URL: c.URL.Reveal(), Method: c.Method, Format: c.Format, Preset: c.Preset,
		Fields: c.Params.Reveal(), Body: c.Body.Reveal(),
		Headers: c.Headers.Reveal(), Username: c.Username, Password: c.Password.Reveal(), From: c.Sender,
		SuccessCodes: c.SuccessCodes, Timeout: c.Timeout, Now: time.Now,
		Success: sms.Success{Pattern: c.SuccessPattern, Field: c.SuccessField, Values: c.SuccessValues}})
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
