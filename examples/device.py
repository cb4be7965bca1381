"""A device over HTTP: sends its temperature every second and carries out commands.
Usage: VIGIL_TOKEN=... python3 device.py http://127.0.0.1:8080 sensor-1"""
import json, os, random, sys, threading, time, urllib.request

url, object_id = sys.argv[1:]

def call(path, body=None):
    headers = {"Authorization": f"Bearer {os.environ['VIGIL_TOKEN']}", "Content-Type": "application/json"}
    request = urllib.request.Request(f"{url}/api/v1/objects/{object_id}{path}", body and json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)

def carry_out_commands():
    while True:
        for command in call("/commands?status=queued&wait=30"):
            print("command", command["command"], command["params"], flush=True)
            call(f"/commands/{command['_id']}/result", {"status": "done"})

threading.Thread(target=carry_out_commands, daemon=True).start()
while True:
    packet = call("/packets", {"time": int(time.time() * 1000), "temperature": 20 + random.random()})
    print("stored", packet["temperature"], flush=True)
    time.sleep(1)
