package push

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/hkdf"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"strings"
	"testing"

	"castellan/domain/kit/storetest"
)

func raw(t *testing.T, s string) []byte {
	t.Helper()
	return storetest.Value(base64.RawURLEncoding.DecodeString(s))(t)
}

func private(t *testing.T, s string) *ecdh.PrivateKey {
	t.Helper()
	return storetest.Value(ecdh.P256().NewPrivateKey(raw(t, s)))(t)
}

// The values of RFC 8291, appendix A.
const (
	rfcText     = "When I grow up, I want to be a watermelon"
	rfcSender   = "yfWPiYE-n46HLnH0KqZOF1fJJU3MYrct3AELtAQ-oRw"
	rfcReceiver = "q1dXpw3UpT5VOmu_cf_v6ih07Aems3njxI-JWgLcM94"
	rfcPublic   = "BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4"
	rfcAuth     = "BTBZMqHH6r4Tts7J_aSIgg"
	rfcSalt     = "DGv6ra1nlYgDCS1FRnbzlw"
	rfcBody     = "DGv6ra1nlYgDCS1FRnbzlwAAEABBBP4z9KsN6nGRTbVYI_c7VJSPQTBtkgcy27mlmlMoZIIgDll6e3vCYLoc" +
		"InmYWAmS6TlzAC8wEqKK6PBru3jl7A_yl95bQpu6cVPTpK4Mqgkf1CXztLVBSt2Ks3oZwbuwXPXLWyouBWLVWGNWQexSgSx" +
		"sj_Qulcy4a-fN"
)

func TestVectorOfTheRFC(t *testing.T) {
	device := storetest.Value(deviceKeys{P256dh: rfcPublic, Auth: rfcAuth}.receiver())(t)
	got, err := device.seal([]byte(rfcText), 0, private(t, rfcSender), raw(t, rfcSalt))
	if err != nil || !bytes.Equal(got, raw(t, rfcBody)) {
		t.Errorf("%v\n got %s\nwant %s", err, base64.RawURLEncoding.EncodeToString(got), rfcBody)
	}
	if text := opened(t, private(t, rfcReceiver), raw(t, rfcAuth), raw(t, rfcBody)); text != rfcText {
		t.Errorf("the device of the tests reads %q", text)
	}
}

// opened returns the text that a device decrypts with its private key (RFC 8291, section 3.4).
func opened(t *testing.T, own *ecdh.PrivateKey, auth, body []byte) string {
	t.Helper()
	if len(body) < 21+65 || binary.BigEndian.Uint32(body[16:]) < uint32(len(body)-86) || body[20] != 65 {
		t.Fatalf("malformed header of a body of %d bytes", len(body))
	}
	salt, sender, sealed := body[:16], body[21:86], body[86:]
	public := storetest.Value(ecdh.P256().NewPublicKey(sender))(t)
	shared := storetest.Value(own.ECDH(public))(t)
	derive := func(secret, salt []byte, info string, n int) []byte {
		return storetest.Value(hkdf.Key(sha256.New, secret, salt, info, n))(t)
	}
	secret := derive(shared, auth, "WebPush: info\x00"+string(own.PublicKey().Bytes())+string(sender), 32)
	block := storetest.Value(aes.NewCipher(derive(secret, salt, "Content-Encoding: aes128gcm\x00", 16)))(t)
	aead := storetest.Value(cipher.NewGCM(block))(t)
	record, err := aead.Open(nil, derive(secret, salt, "Content-Encoding: nonce\x00", 12), sealed, nil)
	if err != nil {
		t.Fatalf("the device cannot open the message: %v", err)
	}
	text := strings.TrimRight(string(record), "\x00")
	if !strings.HasSuffix(text, "\x02") {
		t.Fatalf("the record does not end like a last one: %q", text)
	}
	return strings.TrimSuffix(text, "\x02")
}

// Every message has its own key and salt, and all have one length.
func TestMessagesAreUnlinkable(t *testing.T) {
	device, err := deviceKeys{P256dh: rfcPublic + "=", Auth: rfcAuth + "=="}.receiver() // padding is tolerated
	storetest.Must(t, err)
	var bodies [][]byte
	for _, text := range []string{"", "x", strings.Repeat("x", paddedBytes-1)} {
		b := storetest.Value(device.encrypt([]byte(text)))(t)
		storetest.Equal(t, opened(t, private(t, rfcReceiver), raw(t, rfcAuth), b), text, "came as")
		bodies = append(bodies, b)
	}
	for i, b := range bodies {
		next := bodies[(i+1)%len(bodies)]
		if len(b) != len(next) || bytes.Equal(b[:16], next[:16]) || bytes.Equal(b[21:86], next[21:86]) {
			t.Errorf("message %d: %d bytes, the next %d; or they share a salt or a key", i, len(b), len(next))
		}
	}
	if _, err := device.encrypt(make([]byte, recordSize-16)); err == nil {
		t.Error("a text longer than a record was sealed")
	}
}

func TestKeysAreChecked(t *testing.T) {
	offCurve := raw(t, rfcPublic)
	offCurve[64] ^= 1
	for name, k := range map[string]deviceKeys{
		"nothing":     {},
		"no auth":     {P256dh: rfcPublic},
		"short auth":  {P256dh: rfcPublic, Auth: rfcAuth[:20]},
		"compressed":  {P256dh: base64.RawURLEncoding.EncodeToString(append([]byte{2}, offCurve[1:33]...)), Auth: rfcAuth},
		"no point":    {P256dh: base64.RawURLEncoding.EncodeToString(offCurve), Auth: rfcAuth},
		"no base64":   {P256dh: "!", Auth: rfcAuth},
		"infinity":    {P256dh: "AA", Auth: rfcAuth},
		"two in auth": {P256dh: rfcPublic, Auth: rfcAuth + rfcAuth},
	} {
		storetest.Fails(t, storetest.Err(k.receiver()), "", name, "accepted")
	}
}
