"""A Millrace worker in Python, standard library only: python3 worker.py [http://127.0.0.1:4747]"""
import json, os, sys, threading, time, urllib.error, urllib.request

URL = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("MILLRACE_URL", "http://127.0.0.1:4747")
WORKER = f"python-{os.getpid()}"


def shout(config, task):
    return {"text": str(config["text"]).upper(), "attempt": task["attempt"]}


def total(config, task):
    return {"sum": sum(config["numbers"])}


HANDLERS = {"py.shout": shout, "py.total": total}


def post(path, body):
    headers = {"Content-Type": "application/json", "Authorization": f"Bearer {os.environ.get('MILLRACE_API_KEY', '')}"}
    request = urllib.request.Request(URL + path, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=40) as answer:
        return json.load(answer)


def work(task):
    done = threading.Event()
    # A lease lasts 15 s: whoever runs longer has to say that it is alive. A handler that can stop early may look here
    # for its token among the cancelled.
    def beat():
        while not done.wait(5):
            post("/v1/tasks/heartbeat", {"worker_id": WORKER, "tokens": [task["token"]]})
    threading.Thread(target=beat, daemon=True).start()
    try:
        post("/v1/tasks/complete", {"token": task["token"], "output": HANDLERS[task["handler"]](task["config"], task)})
    except urllib.error.HTTPError as error:
        print(f"{task['node_id']}: not accepted, {error.code}", file=sys.stderr)
    except Exception as error:
        failure = {"code": type(error).__name__, "message": str(error), "retryable": not isinstance(error, (ValueError, TypeError, KeyError, AttributeError))}
        post("/v1/tasks/fail", {"token": task["token"], "error": failure})
    finally:
        done.set()


while True:
    try:
        leased = post("/v1/tasks/lease", {"worker_id": WORKER, "handlers": list(HANDLERS), "max": 4, "wait_ms": 20000})
        for thread in [threading.Thread(target=work, args=(task,)) for task in leased["tasks"]]:
            thread.start()
    except OSError as error:
        print(f"cannot reach {URL}: {error}", file=sys.stderr)
        time.sleep(1)
