import io.debezium.embedded.Connect;
import io.debezium.engine.ChangeEvent;
import io.debezium.engine.DebeziumEngine;
import io.debezium.engine.format.Json;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.ObjectOutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Properties;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import org.apache.kafka.connect.source.SourceRecord;

/**
 * Reads a backlog with Debezium's embedded engine, and counts changes.
 *
 * <p>Commands come as lines on standard input, words separated by tabs, and each is answered by one
 * line of JSON. The process lives on between commands, so later ones meet a warm JVM.
 *
 * <pre>
 * connect  HOST PORT USER PASSWORD TABLE ROWS FOLDER FILE SETTINGS  records as the connector makes them
 * json     the same                                                 and serialized, as its users get
 *                                                                   them; SETTINGS as name=value,…
 * </pre>
 *
 * It goes on from offsets that say "at the beginning of FILE", as an engine would that was stopped
 * before the rows were written, and takes the table's columns from the server. The time runs from the
 * first batch that holds a change to the one with the last, so starting the engine does not count.
 */
public final class EngineReader {
  private final long wanted;
  private final CountDownLatch done = new CountDownLatch(1);
  private final AtomicReference<String> failure = new AtomicReference<>();
  private long rows;
  private long begun;
  private long ended;
  private long rowsBeforeBegin;

  private EngineReader(long wanted) {
    this.wanted = wanted;
  }

  private static Properties settings(String[] words) {
    Properties settings = new Properties();
    settings.setProperty("name", "bench");
    settings.setProperty("connector.class", "io.debezium.connector.mysql.MySqlConnector");
    settings.setProperty("database.hostname", words[1]);
    settings.setProperty("database.port", words[2]);
    settings.setProperty("database.user", words[3]);
    settings.setProperty("database.password", words[4]);
    settings.setProperty("database.server.id", "1700000001");
    settings.setProperty("database.ssl.mode", "disabled");
    settings.setProperty("topic.prefix", "bench");
    settings.setProperty("table.include.list", words[5]);
    settings.setProperty("snapshot.mode", "recovery");
    settings.setProperty("include.schema.changes", "false");
    settings.setProperty("tombstones.on.delete", "false");
    Path folder = Path.of(words[7]);
    settings.setProperty(
        "schema.history.internal", "io.debezium.storage.file.history.FileSchemaHistory");
    settings.setProperty(
        "schema.history.internal.file.filename", folder.resolve("history").toString());
    settings.setProperty(
        "offset.storage", "org.apache.kafka.connect.storage.FileOffsetBackingStore");
    settings.setProperty("offset.storage.file.filename", folder.resolve("offsets").toString());
    settings.setProperty("offset.flush.interval.ms", "10000");
    if (!words[9].isEmpty()) {
      for (String setting : words[9].split(",")) {
        String[] pair = setting.split("=", 2);
        settings.setProperty(pair[0], pair[1]);
      }
    }
    settings.setProperty("key.converter.schemas.enable", "false");
    settings.setProperty("value.converter.schemas.enable", "false");
    return settings;
  }

  /** What FileOffsetBackingStore reads: a serialized map of JSON to JSON. */
  private static void writeOffsets(Path folder, String file) throws IOException {
    HashMap<byte[], byte[]> offsets = new HashMap<>();
    String value = "{\"file\":\"" + file + "\",\"pos\":4}";
    offsets.put(
        "[\"bench\",{\"server\":\"bench\"}]".getBytes(StandardCharsets.UTF_8),
        value.getBytes(StandardCharsets.UTF_8));
    try (ObjectOutputStream out =
        new ObjectOutputStream(Files.newOutputStream(folder.resolve("offsets")))) {
      out.writeObject(offsets);
    }
  }

  private <T> void take(
      List<T> batch, DebeziumEngine.RecordCommitter<T> committer, Counter<T> counter)
      throws InterruptedException {
    long changes = 0;
    for (T record : batch) {
      if (counter.isChange(record)) {
        changes++;
      }
      committer.markProcessed(record);
    }
    committer.markBatchFinished();
    if (changes > 0 && ended == 0) {
      rows += changes;
      if (begun == 0) {
        begun = System.nanoTime();
        rowsBeforeBegin = rows;
      }
      if (rows >= wanted) {
        ended = System.nanoTime();
        done.countDown();
      }
    }
  }

  private interface Counter<T> {
    boolean isChange(T record);
  }

  private DebeziumEngine<?> engine(String[] words) {
    DebeziumEngine.CompletionCallback callback =
        (success, message, error) -> {
          if (!success) {
            failure.compareAndSet(null, String.valueOf(message) + " " + error);
          }
          done.countDown();
        };
    if (words[0].equals("connect")) {
      return DebeziumEngine.create(Connect.class)
          .using(settings(words))
          .using(callback)
          .notifying(
              (List<ChangeEvent<SourceRecord, SourceRecord>> batch,
                  DebeziumEngine.RecordCommitter<ChangeEvent<SourceRecord, SourceRecord>>
                      committer) ->
                  take(batch, committer, record -> record.destination().endsWith(words[5])))
          .build();
    }
    return DebeziumEngine.create(Json.class)
        .using(settings(words))
        .using(callback)
        .notifying(
            (List<ChangeEvent<String, String>> batch,
                DebeziumEngine.RecordCommitter<ChangeEvent<String, String>> committer) ->
                take(batch, committer, record -> record.destination().endsWith(words[5])))
        .build();
  }

  private String answer(String[] words) throws IOException, InterruptedException {
    DebeziumEngine<?> engine = engine(words);
    ExecutorService executor = Executors.newSingleThreadExecutor();
    writeOffsets(Path.of(words[7]), words[8]);
    executor.execute(engine);
    boolean inTime = done.await(600, TimeUnit.SECONDS);
    if (failure.get() == null) {
      engine.close();
    }
    executor.shutdown();
    executor.awaitTermination(60, TimeUnit.SECONDS);
    if (!inTime || ended == 0) {
      String text = String.valueOf(failure.get()).replaceAll("[\"\\\\\\p{Cntrl}]", " ");
      return "{\"error\": \"" + text + "\", \"rows\": " + rows + "}";
    }
    // What the first batch held was read before the clock began to run.
    return "{\"rows\": "
        + rows
        + ", \"timed_rows\": "
        + (rows - rowsBeforeBegin)
        + ", \"seconds\": "
        + (ended - begun) / 1e9
        + "}";
  }

  public static void main(String[] arguments) throws IOException, InterruptedException {
    BufferedReader commands =
        new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = commands.readLine(); line != null; line = commands.readLine()) {
      String[] words = line.split("\t", -1);
      String reply = new EngineReader(Long.parseLong(words[6])).answer(words);
      // Whatever logs on standard output does not look like this.
      System.out.println("answer " + reply);
      System.out.flush();
    }
    System.exit(0);
  }
}
